"""Workers that come to a job and are not let in end with it, and cost nobody else anything."""

from __future__ import annotations

import re
from pathlib import Path

from tests.cluster import ROOT, cluster

NODE = [str(ROOT / "tests" / "faults" / "node.py")]
ENV = {
    "MERCURY_MIN_WORKERS": "1",
    "MERCURY_MAX_WORKERS": "3",
    "MERCURY_HEARTBEAT_TIMEOUT_MS": "1000",
    "MERCURY_STALL_WARN_S": "1",
    "MERCURY_STALL_TIMEOUT_S": "2",
}


def waited_s(log: str) -> int:
    return max(map(int, re.findall(r"has waited for (\d+) s", log)), default=0)


def test_who_is_not_let_in_waits_and_ends_with_its_scheduler(tmp_path: Path) -> None:
    stop = tmp_path / "stop"
    env = {**ENV, "STOP": str(stop)}
    with cluster(NODE, workers=1, servers=1, van="mercury", env=env) as job:
        job.wait_output("joined")
        waits = job.start_again("worker", -2)
        job.wait_until("it has waited for long", lambda: waited_s(waits.output) > 2)
        assert "lost" not in job.report(), job.report()
        assert "gives up" not in job.report(), job.report()
        job.scheduler.kill()
        job.wait_until("it ends", lambda: waits.code is not None)
        assert waits.code == 1, job.report()
        assert "the scheduler was lost while it was let in; start it again" in waits.output
        stop.touch()
        job.wait()
        assert [p.code for p in (job.workers[0], job.servers[0])] == [0, 0], job.report()


def test_who_is_not_let_in_ends_with_the_job(tmp_path: Path) -> None:
    stop = tmp_path / "stop"
    with cluster(NODE, workers=1, van="mercury", env={**ENV, "STOP": str(stop)}) as job:
        job.wait_output("joined")
        waits = job.start_again("worker", -2)
        job.wait_until("it has come", lambda: "joined" in waits.output)
        stop.touch()
        job.wait()
        assert "the job ended before this worker was let in" in waits.output, job.report()
        assert [p.code for p in job.processes if p is not waits] == [0, 0, 0, 0], job.report()
