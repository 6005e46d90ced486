"""The examples for PyTorch learn something, and all workers the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.integration.test_torch_fabric import last_words
from tests.integration.torch_workers import EXAMPLES, fabric_job, ranks

pytestmark = pytest.mark.xdist_group("torch")  # imported once


def example(name: str, *words: str) -> str:
    with ranks(str(EXAMPLES / name), *words) as job:
        job.check()
        weights = {line for w in job.workers for line in w.output.splitlines() if "weights" in line}
        assert len(weights) == 1, job.report()
        return job.workers[0].output


def test_digits(tmp_path: Path) -> None:
    words = ("torch_digits.py", "--checkpoints", str(tmp_path), "--epochs")
    example(*words, "1")
    said = example(*words, "2")
    assert "epoch 1" not in said
    assert float(re.findall(r"accuracy ([\d.]+)", said)[-1]) > 0.9, said


def test_digits_under_mlfabric() -> None:
    words = (str(EXAMPLES / "torch_digits.py"), "--fabric", "async", "--epochs", "2")
    with fabric_job(*words, workers=2) as job:
        job.check()
        said = job.workers[0].output
        assert float(re.findall(r"accuracy ([\d.]+)", said)[-1]) > 0.9, said
        (first, *others) = last_words(job, "weights")
        assert others == [first], job.report()


def test_text() -> None:
    said = example("torch_text.py", "--steps", "26", "--width", "32", "--batch-size", "8")
    losses = [float(loss) for loss in re.findall(r"loss ([\d.]+)", said)]
    assert losses[-1] < losses[0] - 0.5, said
    assert "The statement" in said
