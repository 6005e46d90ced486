"""PyTorch under MLfabric: what training comes to in each mode, and what is refused."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.cluster import Cluster
from tests.integration.torch_workers import fabric_job

pytestmark = pytest.mark.xdist_group("torch")  # imported once

WORKERS = 3
LEFT = "mercury.fabric: the optimizer does not have 'aside', which require a gradient"


def last_words(job: Cluster, begin: str) -> list[list[str]]:
    """Of each worker's line that begins so."""
    return [
        line.removeprefix(begin).split()
        for worker in job.workers
        for line in worker.output.splitlines()
        if line.startswith(begin)
    ]


@pytest.mark.drawn(2)
@pytest.mark.parametrize("optimizer", ["momentum", "nesterov", "plain", "adamw"])
def test_one_worker_trains_as_it_would_alone(optimizer: str) -> None:
    with fabric_job("torch_fabric.py", "alone", optimizer, workers=1) as job:
        job.check()
        assert last_words(job, "as plain torch") == [[]], job.report()


@pytest.mark.drawn(1)
@pytest.mark.parametrize("outer", ["average", "momentum", "nesterov"])
def test_local_steps_of_one_worker_are_the_papers(outer: str) -> None:
    with fabric_job("torch_fabric.py", "local", outer, workers=1) as job:
        job.check()
        assert last_words(job, "as the papers have it") == [[]], job.report()
        assert "last steps (1 of every=4) are in no update" in job.workers[0].output


def test_synchronous_workers_train_as_one_would_on_all_data() -> None:
    with fabric_job("torch_fabric.py", "joint", replicas=1) as job:
        job.check()
        (first, *others) = last_words(job, "as one process")
        assert others == [first] * (WORKERS - 1), job.report()
        assert sum(worker.output.count(LEFT) for worker in job.workers) == 1, job.report()


@pytest.mark.drawn(1)
@pytest.mark.parametrize(("mode", "every"), [("async", 1), ("stale:2", 1), ("async", 7)])
def test_workers_learn_at_their_own_pace(mode: str, every: int) -> None:
    env = {"MERCURY_FABRIC_MODE": mode, "EVERY": str(every)}
    with fabric_job("torch_fabric.py", "learns", env=env) as job:
        job.check()
        models, buffers = zip(*last_words(job, "learnt"))
        assert len(models) == WORKERS
        assert len(set(models)) == 1, job.report()
        assert sum(worker.output.count(LEFT) for worker in job.workers) == 1, job.report()
        assert not any("are in no update" in worker.output for worker in job.workers)
        assert len(set(buffers)) == WORKERS, job.report()  # each has its own statistics


def test_training_goes_on_without_the_server(tmp_path: Path) -> None:
    go_on = tmp_path / "go on"
    with fabric_job("torch_fabric.py", "learns", str(go_on), replicas=1) as job:
        job.wait_output("ten steps")
        job.servers[0].kill()
        go_on.touch()
        job.wait()
        for process in job.processes:
            killed = process is job.servers[0]
            assert process.code == (-signal.SIGKILL if killed else 0), job.report()
        models, _ = zip(*last_words(job, "learnt"))
        assert len(models) == WORKERS
        assert len(set(models)) == 1, job.report()
