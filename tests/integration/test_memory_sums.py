"""Work on plain memory, between processes that have never imported MXNet."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster import ROOT, cluster

WORKER = str(Path(__file__).with_name("memory_sums.py"))


@pytest.mark.parametrize("van", ["mercury", "zmq"])
def test_arrays_are_summed_without_mxnet(van: str) -> None:
    env = {"PYTHONPATH": str(ROOT), "MERCURY_DETERMINISTIC": "1"}
    with cluster([WORKER], 4, van=van, env=env) as job:
        job.check()
        said = [process.output.count("no memory to share") for process in job.processes]
        assert sum(said) == (van == "mercury"), job.report()  # of server 0, once
        for worker in job.workers:
            assert "summed" in worker.output
            refused = [line for line in worker.output.splitlines() if line.startswith("refused: ")]
            assert refused == [
                "refused: tensor 'value' has 16 bytes, but the memory that is given has 12",
                "refused: tensor 'rows' has 50 rows, so no row -1",
                "refused: tensor 'rows' has 50 rows, so no row 50",
                "refused: tensor 'loose' is asynchronous, so what workers push is added as it "
                "comes, and MERCURY_DETERMINISTIC=1 asks for the order of ranks: use 'dist_sync', "
                "or unset it",
            ]
