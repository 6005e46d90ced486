"""MXNet's scripts under MLfabric, unchanged: what they come to, and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cluster import ROOT, clean_environment, cluster

SCRIPT = str(ROOT / "tests" / "integration" / "fabric_gluon.py")
LENET = str(ROOT / "examples" / "train_lenet.py")


def launched(*words: object, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tracer", "launch", *map(str, words)],
        cwd=ROOT,
        env=clean_environment(**{"MERCURY_FABRIC": "1", **env}),
        capture_output=True,
        text=True,
        timeout=240,
    )


def train(
    folder: Path, workers: int, way: str, steps: int, *optimizer: object
) -> list[dict[str, Any]]:
    command = [SCRIPT, *map(str, (folder, way, steps, *optimizer))]
    servers = min(workers, 2)
    with cluster(command, workers, servers, "mercury", env={"MERCURY_FABRIC": "1"}) as job:
        job.check()
    return [json.loads((folder / f"worker_{rank}.json").read_text()) for rank in range(workers)]


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("optimizer", "momentum"), [("sgd", 0.0), ("sgd", 0.9), ("nag", 0.9), ("adam", 0.0)]
)
def test_one_worker_trains_as_it_would_alone(
    tmp_path: Path, optimizer: str, momentum: float
) -> None:
    (worker,) = train(tmp_path, 1, "gluon", 8, optimizer, momentum)
    for ours, alone in zip(worker["weights"], worker["alone"]):
        np.testing.assert_allclose(ours, alone, rtol=2e-4, atol=2e-5)
    assert worker["stats"]["fabric"]["pushed"] == worker["stats"]["fabric"]["committed"] == 8


@pytest.mark.drawn(1)
@pytest.mark.parametrize("way", ["steps", "sums"])
def test_synchronous_workers_train_as_one_would_on_all_data(tmp_path: Path, way: str) -> None:
    workers = train(tmp_path, 3, way, 8, "sgd", 0.9)
    for worker in workers:
        assert worker["weights"] == workers[0]["weights"]
        fates = worker["stats"]["fabric"]
        assert fates["pushed"] > 8  # workers have also compared what they train
        # The sum may be here before the report.
        assert fates["committed"] in (fates["pushed"] - 1, fates["pushed"])
        for ours, alone in zip(worker["weights"], worker["alone"]):
            np.testing.assert_allclose(ours, alone, rtol=2e-4, atol=2e-5)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("way", ["gluon", "module"])
def test_all_begin_with_the_first_worker_s_values_and_learn(tmp_path: Path, way: str) -> None:
    steps = 300 if way == "module" else 40
    for worker in train(tmp_path, 3, way, steps):
        fates = worker["stats"]["fabric"]
        assert steps < fates["pushed"] == sum(fates.values()) - fates["pushed"]
        if way == "module":
            found = np.concatenate([np.ravel(w) for w in worker["weights"]])
            np.testing.assert_allclose(sorted(found), [-3.4, 0, 1.5, 2.0], atol=0.2)


def test_a_loop_of_one_s_own(tmp_path: Path) -> None:
    """Each push of all keys is an update; a key that is never pushed stays as it was."""
    for worker in train(tmp_path, 2, "hand", 10, "sgd", 0.5):
        first, second, untouched = (np.array(w) for w in worker["weights"])
        assert worker["stats"]["fabric"]["pushed"] > 10
        assert (first < 0).all()
        assert (second < 1).all()
        np.testing.assert_array_equal(untouched, np.full((2, 2), 2.0))


def test_half_a_step_of_a_script_that_fails_is_not_sent(tmp_path: Path) -> None:
    job = launched("-n", 1, "-s", 1, "--", sys.executable, SCRIPT, tmp_path, "mistake", 1)
    assert job.returncode == 1
    assert "InvalidArgumentError: under MLfabric a process has one store" in job.stdout
    assert "worker 0: 1 updates pushed, 1 committed" in job.stdout


@pytest.mark.parametrize(
    ("words", "env", "says"),
    [
        (
            ["--kvstore", "dist_sync"],
            {"MERCURY_FABRIC_MODE": "stale:2"},
            "MERCURY_FABRIC_MODE is 'stale:2', and the script asks for 'dist_sync'",
        ),
        ([], {"MERCURY_FABRIC_MODE": "sync"}, "MERCURY_FABRIC_MODE is 'sync', and under MXNet"),
        ([], {"MERCURY_FABRIC": "2"}, "MERCURY_FABRIC is '2'; allowed: 0 to 1"),
        ([], {"MERCURY_FABRIC_UPDATE": "sum"}, "MERCURY_FABRIC_UPDATE is 'sum', and under MXNet"),
        ([], {"MERCURY_FABRIC_DELAY_BOUND": "-1"}, "MERCURY_FABRIC_DELAY_BOUND is '-1'; allowed"),
    ],
)
def test_bad_input_is_one_clear_line(words: list[str], env: dict[str, str], says: str) -> None:
    command = [LENET, *(words or ["--kvstore", "dist_async"]), "--steps", "1"]
    with cluster(command, 2, 1, "mercury", env={"MERCURY_FABRIC": "1", **env}) as job:
        job.wait_until("one fails", lambda: any(process.code for process in job.processes))
        job.wait_until("it says why", lambda: says in job.report())


def test_mlfabric_needs_packets() -> None:
    words = ("--van", "zmq", "--", sys.executable, LENET, "--kvstore", "dist_async")
    job = launched("-n", 1, "-s", 1, *words)
    assert job.returncode != 0
    assert "needs the packets of DMLC_PS_VAN_TYPE=mercury, not 'zmq'" in job.stdout + job.stderr
