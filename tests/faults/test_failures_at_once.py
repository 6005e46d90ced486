"""MXNet's engine notes failures in a list without a lock: those of ours come one after another."""

from __future__ import annotations

import pytest

from tests.cluster import ROOT, cluster

SCRIPT = str(ROOT / "tests" / "faults" / "failures_at_once.py")


@pytest.mark.parametrize("van", ["zmq", "mercury"])
def test_operations_that_begin_at_once_when_the_job_has_failed(van: str) -> None:
    """Many threads of the engine's give them to us, and we fail each there."""
    env = {"MXNET_CPU_PRIORITY_NTHREADS": "16", "MALLOC_PERTURB_": "165"}
    with cluster([SCRIPT], 1, 1, van=van, env=env) as job:
        job.wait_output("waiting")
        job.servers[0].kill()
        job.wait()
        assert "400 of 400 failed" in job.workers[0].output, job.report()
        assert (job.workers[0].code or 0) > 0, job.report()
