"""Work on plain memory, between processes that have never imported MXNet."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster import ROOT, cluster

WORKER = str(Path(__file__).with_name("memory_sums.py"))


@pytest.mark.parametrize("van", ["mercury", "zmq"])
def test_arrays_are_summed_without_mxnet(van: str) -> None:
    with cluster([WORKER], van=van, env={"PYTHONPATH": str(ROOT)}) as job:
        job.check()
        for worker in job.workers:
            assert "summed" in worker.output
            refused = "tensor 'w2' has 400000 bytes, but the memory that is given has 12"
            assert f"refused: {refused}" in worker.output
