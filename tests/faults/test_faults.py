"""Processes that die, freeze, fail or stop early: nobody hangs, the culprit is named."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from pslite_ext.errors import FAILED_ELSEWHERE
from tests.cluster import TRAINING, Cluster, Process, cluster, job_that_trains_on

both_vans = pytest.mark.parametrize("van", ["zmq", "mercury"])
LIMIT_S = 60  # seconds where nothing else runs; this is about hanging


def ended_well_enough(job: Cluster, culprit: Process, says: str) -> None:
    """All others end by themselves, with an error that says who it was."""
    others = [p for p in job.processes if p is not culprit]
    job.wait_until("the others end", lambda: all(p.code is not None for p in others), LIMIT_S)
    for process in others:
        assert process.code is not None
        assert process.code > 0, f"{process.name} ended with {process.code}\n{job.report()}"
        assert says in process.output, job.report()


def lost(victim: str, van: str, number: int, env: dict[str, str]) -> None:
    """One is killed or stopped while all train: the others say who is lost."""
    with cluster(TRAINING, van=van, env=env) as job:
        job.wait_output("looping")
        culprit = next(p for p in job.processes if p.name == victim)
        culprit.kill(number)
        name = "the scheduler" if culprit.role == "scheduler" else victim
        ended_well_enough(job, culprit, f"lost {name}")


@pytest.mark.drawn(3)
@both_vans
@pytest.mark.parametrize("victim", ["worker 1", "worker 0", "server 1", "scheduler 0"])
def test_killed(victim: str, van: str) -> None:
    lost(victim, van, signal.SIGKILL, {})


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("victim", "van"),
    [
        ("worker 1", "zmq"),
        ("worker 1", "mercury"),
        ("server 0", "mercury"),
        ("scheduler 0", "mercury"),
    ],
)
def test_frozen(victim: str, van: str) -> None:
    lost(victim, van, signal.SIGSTOP, {"MERCURY_HEARTBEAT_TIMEOUT_MS": "6000"})


@pytest.mark.drawn(1)
@both_vans
def test_an_exception_reaches_everybody(van: str) -> None:
    with cluster(TRAINING, van=van, env={"FAIL_RANK": "1"}) as job:
        ended_well_enough(
            job, job.workers[1], "worker 1 ended: ValueError: a mistake in the script"
        )
        job.wait()
        assert job.workers[1].code == 1


@pytest.mark.drawn(1)
@both_vans
def test_a_worker_that_stops_early_is_named(van: str) -> None:
    with cluster(TRAINING, van=van, env={"STOP_RANK": "0"}) as job:
        job.wait()
        assert job.workers[0].code == 0, job.report()
        assert job.workers[1].code != 0, job.report()
        assert "worker 0 has finished and pushes no more" in job.workers[1].output, job.report()


@pytest.mark.drawn(1)
@both_vans
def test_interrupted(van: str) -> None:
    """Ctrl-C reaches a worker that waits for a frozen one."""
    with cluster(TRAINING, van=van) as job:
        job.wait_output("looping")
        job.workers[1].kill(signal.SIGSTOP)
        job.workers[0].kill(signal.SIGINT)
        job.wait_until("it ends", lambda: job.workers[0].code is not None, LIMIT_S)
        assert "KeyboardInterrupt" in job.workers[0].output, job.report()


@pytest.mark.drawn(1)
@both_vans
def test_different_shapes(van: str) -> None:
    code = (
        "import mxnet as mx\n"
        "kv = mx.kv.create('dist_sync')\n"
        "kv.init('the_weight', mx.nd.zeros((5 + kv.rank,)))\n"
        "kv.pushpull('the_weight', mx.nd.ones((5 + kv.rank,)))\n"
        "mx.nd.waitall()\n"
    )
    with cluster(["-c", code], van=van) as job:
        job.wait()
        for worker in job.workers:
            assert worker.code in (1, FAILED_ELSEWHERE), job.report()
            for text in (
                "InvalidArgumentError: tensor 'the_weight': worker ",
                "worker 0 has float32 of shape (5,)",
                "worker 1 has float32 of shape (6,)",
                "all workers must use the same shape",
            ):
                assert text in worker.output, job.report()


def test_nobody_comes() -> None:
    env = {"DMLC_NUM_WORKER": "2", "DMLC_NUM_SERVER": "2", "MERCURY_START_TIMEOUT_S": "12"}
    with cluster(TRAINING, workers=1, servers=1, env=env) as job:
        present = job.processes
        job.wait_until("they give up", lambda: all(p.code is not None for p in present), LIMIT_S)
        text = "1 of 2 workers and 1 of 2 servers"
        assert f"waiting for {text}" in job.scheduler.output, job.report()
        for process in present:
            assert process.code, job.report()
            assert text in process.output, job.report()


def test_one_too_many(tmp_path: Path) -> None:
    with job_that_trains_on(tmp_path, forked=False) as job:
        late = subprocess.run(
            job.workers[0].child.args,
            env={**_environment(job.workers[0]), "DMLC_TASK_ID": "9"},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert late.returncode == 1
        assert "refuses this node" in late.stderr


def _environment(process: Process) -> dict[str, str]:
    raw = Path(f"/proc/{process.child.pid}/environ").read_bytes().decode()
    return dict(item.split("=", 1) for item in raw.split("\0") if "=" in item)
