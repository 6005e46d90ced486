"""Jobs under MLfabric whose workers wait for each other: synchronous, stale, all-reduces."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pslite_ext.errors import FAILED_ELSEWHERE
from tests.cluster import ROOT, cluster
from tests.integration.test_fabric_job import told
from tracer.fabric import read

TRAINING = str(ROOT / "tests" / "integration" / "fabric_training.py")
REDUCING = str(ROOT / "tests" / "integration" / "fabric_reducing.py")
WORKERS = 3


def nothing_is_missing(folder: Path, steps: int) -> None:
    for rank in range(WORKERS):
        stats = told(folder, f"worker_{rank}")["stats"]
        assert stats.pop("pushed") == stats.pop("committed") == steps
        assert not any(stats.values()), stats


def model_of(folder: Path, holder: str) -> tuple[Any, Any]:
    """The model, and what all updates together make of its first values."""
    updates = [np.load(folder / f"updates_{rank}.npy") for rank in range(WORKERS)]
    expected = 1 + np.sum(updates, axis=(0, 1), dtype=np.float64)
    return np.load(folder / f"model_{holder}_0.npy"), expected


@pytest.mark.drawn(1)
@pytest.mark.parametrize("killed", [False, True])
def test_synchronous_workers_go_step_by_step(tmp_path: Path, killed: bool) -> None:
    """A server that dies costs nothing: what its replica lacks is sent again."""
    steps = 12
    env = {"MERCURY_FABRIC_MODE": "sync", "MERCURY_FABRIC_DIVERGENCE_BOUND": "2"}
    command = [TRAINING, str(tmp_path), str(steps), *(("server_0", "SIGKILL") if killed else ())]
    with cluster(command, WORKERS, 1, "mercury", env=env, replicas=1) as job:
        job.wait()
        for process in job.processes:
            dead = killed and process.role == "server"
            assert process.code == (-9 if dead else 0), job.report()
    nothing_is_missing(tmp_path, steps)
    for rank in range(WORKERS):
        assert told(tmp_path, f"worker_{rank}")["versions"] == list(range(steps))
    model, expected = model_of(tmp_path, "replica" if killed else "server")
    np.testing.assert_allclose(model, expected, atol=1e-4)


def test_no_worker_is_further_ahead_than_it_may(tmp_path: Path) -> None:
    steps, ahead = 12, 2
    env = {"MERCURY_FABRIC_MODE": f"stale:{ahead}", "MERCURY_TRACE_DIR": str(tmp_path / "trace")}
    with cluster([TRAINING, str(tmp_path), str(steps)], WORKERS, 1, "mercury", env=env) as job:
        job.check()
    nothing_is_missing(tmp_path, steps)
    model, expected = model_of(tmp_path, "server")
    np.testing.assert_allclose(model, expected, atol=1e-4)
    commits = told(tmp_path, "server_0")["stats"]["commits"]
    for rank in range(WORKERS):
        for pushed, version in enumerate(told(tmp_path, f"worker_{rank}")["versions"]):
            inside = Counter(c["worker"] for c in commits if c["version"] <= version)
            assert min(inside[other] for other in range(WORKERS)) >= pushed - ahead
    assert read(tmp_path / "trace").fates == {"committed": WORKERS * steps}


def test_a_synchronous_job_ends_with_a_worker(tmp_path: Path) -> None:
    env = {"MERCURY_FABRIC_MODE": "sync"}
    command = [TRAINING, str(tmp_path), "12", "worker_1", "SIGKILL"]
    with cluster(command, WORKERS, 1, "mercury", env=env) as job:
        job.wait()
        for process in [job.scheduler, job.workers[0], job.workers[2]]:
            assert process.code == FAILED_ELSEWHERE
            assert "worker 1 is gone, and others wait for it" in process.output, job.report()


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("mode", "servers", "killed"), [("async", 2, False), ("async", 3, True), ("sync", 1, False)]
)
def test_all_workers_get_the_same_sums(
    tmp_path: Path, mode: str, servers: int, killed: bool
) -> None:
    rounds = 10
    # An update that is dropped would be missed below.
    env = {"MERCURY_FABRIC_MODE": mode, "MERCURY_FABRIC_DELAY_BOUND": "1000"}
    victim = servers - 1
    command = [REDUCING, str(tmp_path), str(rounds), *([f"server_{victim}"] if killed else [])]
    with cluster(command, WORKERS, servers, "mercury", env=env, replicas=1) as job:
        job.wait()
        for process in job.processes:
            dead = killed and process.role == "server" and process.rank == victim
            assert process.code == (-9 if dead else 0), job.report()
    workers = [np.load(tmp_path / f"worker_{rank}.npz") for rank in range(WORKERS)]
    sums = workers[0]["sums"]
    expected = np.sum([worker["parts"] for worker in workers], axis=0, dtype=np.float64)
    np.testing.assert_allclose(sums, expected, atol=1e-5)
    fates: Counter[str] = Counter()
    for rank, worker in enumerate(workers):
        np.testing.assert_array_equal(worker["sums"], sums)
        np.testing.assert_array_equal(worker["model"], workers[0]["model"])
        fates.update(told(tmp_path, f"worker_{rank}"))
    # Parts of sums count as updates. They are not in the model; the others are, but for what died
    # with the server.
    parts = WORKERS * (rounds + 2)
    assert fates["pushed"] == WORKERS * rounds + parts
    applied = fates["committed"] - fates["lost"] - parts
    assert applied == WORKERS * rounds or killed
    np.testing.assert_array_equal(workers[0]["model"], np.float32(applied / 2))


def test_an_all_reduce_ends_with_a_worker(tmp_path: Path) -> None:
    with cluster([REDUCING, str(tmp_path), "10", "worker_1"], WORKERS, 1, "mercury") as job:
        job.wait()
        for process in [job.scheduler, job.workers[0], job.workers[2]]:
            assert process.code == FAILED_ELSEWHERE
            assert "worker 1 is gone, and others wait for it" in process.output, job.report()
