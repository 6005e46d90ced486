"""Nodes that come twice, or again: none silently takes another one's place, and all hear why."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pslite_ext.errors import FAILED_ELSEWHERE
from tests.cluster import ROOT, Cluster, Process, cluster

NODE = [str(ROOT / "tests" / "faults" / "node.py")]
LIMIT_S = 60


def environment(process: Process) -> dict[str, str]:
    raw = Path(f"/proc/{process.child.pid}/environ").read_bytes().decode()
    return dict(item.split("=", 1) for item in raw.split("\0") if "=" in item)


@contextmanager
def started_again(process: Process, after: int = 0) -> Iterator[subprocess.Popen[str]]:
    """With the same variables, in another life; `after`: the signal that ends the first one."""
    env = environment(process)
    if after:
        process.kill(after)
        process.child.wait()
    again = subprocess.Popen(
        process.child.args,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield again
    finally:
        again.kill()
        again.communicate()


def await_registered(job: Cluster, *texts: str) -> None:
    """The scheduler says after 10 s who is there."""

    def said() -> bool:
        lines = job.scheduler.output.splitlines()
        return any("registered:" in line and all(t in line for t in texts) for line in lines)

    job.wait_until(f"the scheduler has heard of {texts}", said)


def test_a_node_that_was_started_again_cannot_join_a_job_that_has_begun(tmp_path: Path) -> None:
    stop = tmp_path / "stop"
    with cluster(NODE, van="mercury", servers=1, env={"STOP": str(stop)}) as job:
        job.wait_output("joined")
        with started_again(job.workers[1]) as again:
            out, _ = again.communicate(timeout=LIMIT_S)
        assert again.returncode == 1, out
        says = "the job has its 2 workers already; worker 1 was registered from 127.0.0.1:"
        for text in (out, job.scheduler.output):
            assert says in text, text
            assert "a node that was restarted cannot join a job that has begun" in text, text
        stop.touch()
        job.check()


def test_one_number_is_one_worker_s(tmp_path: Path) -> None:
    go = tmp_path / "go"
    with cluster(NODE, servers=1, env={"STAYS_OUT": "0", "GO": str(go)}) as job:
        await_registered(job, "(task 1)")
        with started_again(job.workers[1]) as again:
            out, _ = again.communicate(timeout=LIMIT_S)
        assert again.returncode == 1, out
        for text in (out, job.scheduler.output):
            assert "worker (DMLC_TASK_ID=1) at 127.0.0.1:" in text, text
            assert "has the same number: give each node one of its own" in text, text
        go.touch()
        job.check()


def test_a_node_that_was_killed_gives_its_place_to_its_next_life(tmp_path: Path) -> None:
    go = tmp_path / "go"
    with cluster(NODE, servers=1, env={"STAYS_OUT": "0", "GO": str(go)}) as job:
        victim = job.workers[1]
        await_registered(job, "(task 1)")
        with started_again(victim, after=signal.SIGKILL) as again:
            job.wait_until("it is in", lambda: "takes the place of" in job.scheduler.output)
            go.touch()
            out, _ = again.communicate(timeout=LIMIT_S)
            assert again.returncode == 0, out
        job.wait()
        assert [p.code for p in job.processes if p is not victim] == [0, 0, 0], job.report()


@pytest.mark.drawn(1)
@pytest.mark.parametrize("van", ["zmq", "mercury"])
def test_who_waits_for_others_hears_of_one_that_was_killed(van: str) -> None:
    env = {"STAYS_OUT": "0", "HAS_STORE": "2", "MERCURY_HEARTBEAT_TIMEOUT_MS": "1000"}
    with cluster(NODE, workers=3, servers=1, van=van, env=env) as job:
        await_registered(job, "(task 1)", "(task 2)", "server at")
        job.workers[1].kill(signal.SIGKILL)
        waiting = [job.scheduler, job.servers[0], job.workers[2]]
        job.wait_until("they end", lambda: all(p.code is not None for p in waiting))
        for process in waiting:
            assert process.code == FAILED_ELSEWHERE, job.report()
            assert "lost worker (DMLC_TASK_ID=1) at 127.0.0.1:" in process.output, job.report()
            assert "before the job had begun: its connection broke" in process.output
