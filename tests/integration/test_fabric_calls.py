"""Jobs under MLfabric whose server's own script applies updates, and says what workers get."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pslite_ext.errors import FAILED_ELSEWHERE
from tests.cluster import ROOT, cluster

SCRIPT = str(ROOT / "tests" / "integration" / "fabric_calls.py")
WORKERS, STEPS = 3, 6
SUM = sum(range(1, WORKERS + 1))
ENV = {"MERCURY_FABRIC_MODE": "sync"}


@pytest.mark.drawn(1)
@pytest.mark.parametrize("killed", [False, True])
def test_each_version_is_what_the_script_makes_of_it(tmp_path: Path, killed: bool) -> None:
    command = [SCRIPT, str(tmp_path), str(STEPS), *(["killed"] if killed else [])]
    with cluster(command, WORKERS, 1, "mercury", env=ENV, replicas=1) as job:
        job.wait()
        for process in job.processes:
            dead = killed and process.role == "server"
            assert process.code == (-9 if dead else 0), job.report()
    models = [1.0]
    for _ in range(STEPS):
        models.append(models[-1] / 2 + SUM)
    for rank in range(WORKERS):
        got = json.loads((tmp_path / f"worker_{rank}.json").read_text())
        assert got == pytest.approx([1000 + model for model in models[:-1]])
    last = json.loads((tmp_path / "model.json").read_text())
    assert last["by"] == ("replica" if killed else "server")
    assert last["values"] == pytest.approx([1000 + models[-1]] * 2)
    assert last["of"] == [WORKERS] * STEPS


def test_a_call_that_fails_ends_the_job_and_is_named() -> None:
    command = [SCRIPT, "/nowhere", str(STEPS), "fails"]
    with cluster(command, WORKERS, 1, "mercury", env=ENV) as job:
        job.wait()
        (server,) = (process for process in job.processes if process.role == "server")
        assert server.code == 1, job.report()
        assert (
            "the server's own call for an update failed: ArithmeticError: 3 updates are too "
            in (server.output)
        )
        for worker in job.workers:
            assert worker.code == FAILED_ELSEWHERE, job.report()
            assert "the server is lost" in worker.output


def test_a_rule_that_the_calls_would_take_the_place_of_is_refused() -> None:
    env = {**ENV, "MERCURY_FABRIC_UPDATE": "momentum:0.5"}
    with cluster([SCRIPT, "/nowhere", "1"], 1, 1, "mercury", env=env) as job:
        job.wait()
        (server,) = (process for process in job.processes if process.role == "server")
        assert server.code == 1, job.report()
        assert "leave MERCURY_FABRIC_UPDATE unset" in server.output
