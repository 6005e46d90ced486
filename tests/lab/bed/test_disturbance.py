"""What happens beside a job: rates that change, another job on its hosts."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from scripts.lab.bed.bed import Bed, LoopbackBed
from scripts.lab.bed.disturbance import Disturbance, Milestones, Steps
from scripts.lab.bed.namespaces import LabError
from scripts.lab.benches.case import Case
from scripts.lab.benches.limits import LOOPBACK
from scripts.lab.runner import disturbed
from scripts.lab.systems.job import JobFailed, MeasuredJob, host_names
from scripts.lab.systems.neighbour import neighbour
from scripts.lab.systems.system import System
from scripts.lab.workloads.job_config import Config
from scripts.lab.workloads.measurement import MARK

MakeBed = Callable[..., Bed]
WAIT_S = 60.0
IDLE = Config("idle", {"count": 1, "bytes": 4})


@pytest.fixture
def asleep(tmp_path: Path) -> System:
    """Its processes neither need MXNet nor say anything."""
    program = tmp_path / "asleep.py"
    program.write_text("import time; time.sleep(60)")
    return System("asleep", sys.executable, program=(str(program),))


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def beside(bed: LoopbackBed, disturbance: Disturbance, look: Callable[[], None]) -> None:
    """Has the disturbance for as long as `look` takes."""
    milestones = Milestones()
    milestones.begun.set()
    maker = threading.Thread(target=disturbance, args=(bed, milestones))
    maker.start()
    try:
        look()
    finally:
        milestones.end()
        maker.join()


def test_steps_are_noted_when_they_are_made(make_bed: MakeBed) -> None:
    bed = make_bed(["a", "b"], 100e6)
    steps = Steps((50e6, 100e6), every_s=0.05)
    began = time.monotonic()
    beside(bed, steps, lambda: until(lambda: len(steps.changes) >= 3))
    assert [rate for _, rate in steps.changes[:3]] == [50e6, 100e6, 50e6]
    times = [at for at, _ in steps.changes]
    assert times == sorted(times)
    assert times[0] >= began


def test_rates_change_from_the_measurement_s_begin_on(make_bed: MakeBed) -> None:
    steps = Steps((50e6, 100e6), every_s=0.01)
    case = case_with(System("none", ""), steps)
    with disturbed(case, make_bed(["a"], 100e6)) as milestones:
        until(lambda: len(steps.changes) == 1)
        time.sleep(0.2)
        assert [rate for _, rate in steps.changes] == [50e6]
        milestones.begun.set()
        until(lambda: len(steps.changes) >= 3)


def case_with(system: System, disturbance: Disturbance) -> Case:
    return Case("any", "x", system, LOOPBACK, IDLE, lambda _: {}, 1, disturbance=disturbance)


def test_a_disturbance_that_fails_fails_the_case(asleep: System) -> None:
    """What was measured was not what was to be measured."""

    def broken(_bed: LoopbackBed, _milestones: Milestones) -> None:
        raise LabError("no change today")

    with LoopbackBed(["a"]) as bed:
        with (
            pytest.raises(LabError, match="no change today"),
            disturbed(case_with(asleep, broken), bed),
        ):
            pass
        with disturbed(case_with(asleep, lambda _bed, _milestones: None), bed):
            pass


def test_a_job_leaves_its_neighbour_alone(asleep: System) -> None:
    with LoopbackBed(host_names(1, 1)) as bed:
        alive: list[int] = []

        def look() -> None:
            until(lambda: len(bed.processes.children) == 3)
            quick = MeasuredJob(bed, asleep, IDLE, program=[sys.executable, "-c", "pass"])
            with pytest.raises(JobFailed, match="gave no result"):
                quick.follow(30)
            alive.append(sum(child.poll() is None for child in bed.processes.children))

        beside(bed, neighbour(asleep, IDLE), look)
        assert alive == [3]
        assert bed.processes.children == []


def test_a_neighbour_that_fails_is_noticed() -> None:
    broken = System("broken", sys.executable, program=("nothing.py",))
    with LoopbackBed(host_names(1, 1)) as bed:
        case = case_with(broken, neighbour(broken, IDLE))
        with pytest.raises(JobFailed, match="broken: scheduler ended"), disturbed(case, bed):
            raise AssertionError("nothing is measured beside it")


def test_a_neighbour_has_begun_before_the_job_starts(tmp_path: Path) -> None:
    program = tmp_path / "begins.py"
    said = f"{MARK}{json.dumps({'event': 'begin'})}"
    program.write_text(f"import time; print({MARK!r} + '{{}}{{'); print({said!r}); time.sleep(60)")
    begins = System("begins", sys.executable, program=(str(program),))
    with LoopbackBed(host_names(1, 1)) as bed:
        with disturbed(case_with(begins, neighbour(begins, IDLE)), bed) as milestones:
            assert milestones.ready.is_set()
            assert len(bed.processes.children) == 3
        assert bed.processes.children == []
