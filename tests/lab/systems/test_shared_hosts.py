"""Several jobs on the same hosts: who trains when, and what is said of each. No MXNet."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from scripts.lab.bed.bed import LoopbackBed
from scripts.lab.systems import shared_hosts
from scripts.lab.systems.job import JobFailed, host_names
from scripts.lab.systems.shared_hosts import SETTLED, mean_s
from scripts.lab.systems.system import System
from scripts.lab.workloads.job_config import Config

# A worker that takes idle_s for an iteration, and says in the end of each what is in `reports`.
PROGRAM = """
import json, os, sys, time
from pathlib import Path
def say(**event):
    print("@lab " + json.dumps(event), flush=True)
config = json.loads(sys.argv[1])
if os.environ["DMLC_ROLE"] != "worker":
    time.sleep(120)
say(event="started")
for turn in range(config["rounds"]):
    while int(Path(config["allowed_file"]).read_text()) <= turn:
        time.sleep(0.001)
    time.sleep(config["idle_s"])
    say(event="round", turn=turn, t=time.monotonic(), wrong=config["reports"])
"""


@pytest.fixture
def trains(tmp_path: Path) -> System:
    program = tmp_path / "trains.py"
    program.write_text(PROGRAM)
    return System("trains", sys.executable, program=(str(program),))


def taking(seconds: float) -> Config:
    return Config("train", {}, idle_s=seconds)


def test_one_trains_alone_and_then_all_do(trains: System) -> None:
    configs = {"quick": taking(0.01), "slow": taking(0.1)}
    with LoopbackBed(host_names(2, 1)) as bed:
        with shared_hosts.shared_hosts(bed, trains, configs) as hosts:
            jobs = hosts._jobs
            assert hosts.alone("quick", 3) >= 0.01
            assert [len(job.ends) for job in jobs.values()] == [SETTLED + 3, 0]
            assert hosts.alone("slow", 2) >= 0.1
            assert [len(job.ends) for job in jobs.values()] == [SETTLED + 3, SETTLED + 2]
            took, processors = hosts.together(["quick", "slow"], 2)
            assert processors > 0
            assert took["quick"] >= 0.01
            assert took["slow"] >= 0.1
            # The quick one has gone on until the slow one had enough.
            assert len(jobs["quick"].ends) > len(jobs["slow"].ends) >= 2 * (SETTLED + 2)
        assert bed.processes.children == []


def test_an_iteration_ends_with_its_slowest_worker(trains: System, tmp_path: Path) -> None:
    with LoopbackBed(host_names(2, 1)) as bed:
        job = shared_hosts.Trainee(bed, trains, taking(0.0), 9091, tmp_path)
        said = [
            {"event": "round", "turn": turn, "t": t, "wrong": []}
            for turn, t in ((0, 1.0), (0, 2.0), (1, 4.0), (1, 3.0), (2, 5.0))
        ]
        for event in said:
            job.job._heard.put((job.job._processes[0], event))
        job.look()
        job.job.end()
    assert job.ends == [2.0, 4.0]
    assert mean_s([2.0, 4.0, 5.0]) == 1.5


def test_wrong_sums_fail(trains: System) -> None:
    config = Config("train", {}, idle_s=0.01, reports=[7])
    with LoopbackBed(host_names(1, 1)) as bed:
        with (
            pytest.raises(JobFailed, match="wrong sums"),
            shared_hosts.shared_hosts(bed, trains, {"a": config}) as hosts,
        ):
            hosts.alone("a", 2)
        assert bed.processes.children == []


def test_a_job_that_dies_fails() -> None:
    broken = System("broken", sys.executable, program=("nothing.py",))
    with (
        LoopbackBed(host_names(1, 1)) as bed,
        pytest.raises(JobFailed, match="broken: "),
        shared_hosts.shared_hosts(bed, broken, {"a": taking(0.0)}),
    ):
        raise AssertionError("it cannot have started")
