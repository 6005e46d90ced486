"""What happens beside a job: rates that change."""

from __future__ import annotations

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
from scripts.lab.systems.system import System
from scripts.lab.workloads.job_config import Config

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
