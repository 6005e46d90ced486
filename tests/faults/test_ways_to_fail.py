"""However workers fail, the others go on; and one in which only Python stands still is not missed,
unless it stalls."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.faults.test_goes_on import others_end, training


def test_two_fail_in_one_step(tmp_path: Path) -> None:
    """Each in a way of its own, before anybody has heard of the other."""
    with training(tmp_path, workers=4, WAYS="1=segfault 2=connections") as job:
        lost = job.workers[1:3]
        others_end(job, tmp_path, lost, 2)
        job.wait_until("they end", lambda: all(worker.code is not None for worker in lost))
        assert all(worker.code != 0 for worker in lost), job.report()


def test_python_that_stands_still_is_not_missed(tmp_path: Path) -> None:
    """What says that a worker is there needs no Python."""
    with training(tmp_path, WAYS="1=7", MERCURY_HEARTBEAT_TIMEOUT_MS="5000") as job:
        job.wait_until("it is awake", lambda: "awake" in job.workers[1].output)
        others_end(job, tmp_path, [], 3)
        assert "the job goes on" not in job.scheduler.output, job.report()


def test_python_that_stands_still_for_too_long_is(tmp_path: Path) -> None:
    stall = {"MERCURY_STALL_WARN_S": "1", "MERCURY_STALL_TIMEOUT_S": "8"}
    with training(tmp_path, 3, WAYS="1=100", **stall) as job:
        others_end(job, tmp_path, [job.workers[1]], 2)
        job.workers[1].kill(signal.SIGALRM)  # wakes it
        job.wait_until("it has heard", lambda: job.workers[1].code is not None)
        assert job.workers[1].code != 0, job.report()
        assert "the job goes on without it" in job.workers[1].output, job.report()
