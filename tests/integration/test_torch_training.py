"""PyTorch on mercury against DDP over Gloo: the same weights, on all workers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.torch_workers import torch_job

WORKER = str(Path(__file__).with_name("torch_training.py"))


@pytest.mark.parametrize(
    ("kind", "optimizer", "accumulate", "clip", "van"),
    [
        ("mlp", "sgd", "1", "-", "mercury"),
        ("cnn", "momentum", "1", "0.5", "mercury"),
        ("mlp", "adam", "1", "0.5", "zmq"),
        ("cnn", "adamw", "4", "-", "mercury"),
        ("mlp", "momentum", "4", "0.5", "mercury"),
    ],
)
def test_weights_are_ddp_s(
    tmp_path: Path, kind: str, optimizer: str, accumulate: str, clip: str, van: str
) -> None:
    words = [WORKER, kind, optimizer, accumulate, clip]
    with torch_job(words, van, MEETING=str(tmp_path / "meeting")) as job:
        job.check()
        assert all("equal" in worker.output for worker in job.workers), job.report()
