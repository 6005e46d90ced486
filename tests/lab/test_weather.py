"""What happens beside a job: rates that change, background flows, another job on its hosts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from bed import Bed, LoopbackBed
from bench_case import Case, Figure
from bench_limits import LOOPBACK
from job import host_names, run_job
from measured import Config
from namespaces import LabError
from runner import Run, measure
from systems import system
from weather import Steps, Weather, flows, neighbour

MakeBed = Callable[..., Bed]
WAIT_S = 10.0


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def beside(bed: LoopbackBed, weather: Weather, look: Callable[[], None]) -> None:
    """Has the weather for as long as `look` takes."""
    over = threading.Event()
    maker = threading.Thread(target=weather, args=(bed, over))
    maker.start()
    try:
        look()
    finally:
        over.set()
        maker.join()


def test_a_background_flow_goes_one_way_and_ends_with_the_job(make_bed: MakeBed) -> None:
    bed = make_bed(["a", "b", "c"], 100e6)
    before = bed.counters("b").received
    beside(bed, flows([("a", "b")]), lambda: until(lambda: bed.counters("b").received > 1e6))
    assert bed.counters("b").received > before + 1e6
    assert bed.counters("a").sent > 10 * bed.counters("b").sent
    assert bed.counters("c").received < 1e4
    assert bed._children == []


def test_steps_are_noted_when_they_are_made(make_bed: MakeBed) -> None:
    bed = make_bed(["a", "b"], 100e6)
    steps = Steps((50e6, 100e6), every_s=0.05)
    began = time.monotonic()
    beside(bed, steps, lambda: until(lambda: len(steps.changes) >= 3))
    assert [rate for _, rate in steps.changes[:3]] == [50e6, 100e6, 50e6]
    times = [at for at, _ in steps.changes]
    assert times == sorted(times)
    assert times[0] >= began


def test_weather_that_fails_fails_the_case(tmp_path: Path) -> None:
    """What was measured was not what was to be measured."""

    def broken(_bed: LoopbackBed, _over: threading.Event) -> None:
        raise LabError("no rain today")

    config = Config("idle", {"count": 1, "bytes": 4}, idle_s=0.1)
    run = Run(tmp_path / "results.json", {})
    case = Case("scenarios", "x", system("zmq", None), LOOPBACK, config, lambda _: {}, 1)
    sunny = Case(**{**vars(case), "measure": lambda _: {"n": Figure(1.0, "")}})
    pytest.importorskip("mxnet")
    assert measure(Case(**{**vars(sunny), "weather": broken}), run) == "failed: no rain today"
    assert [failure.reason for failure in run.failures] == ["no rain today"]
    assert run.rows == []


def test_two_jobs_share_their_hosts() -> None:
    pytest.importorskip("mxnet")
    zmq = system("zmq", None)
    config = Config("rounds", {"count": 2, "bytes": 4000}, rounds=3)
    with LoopbackBed(host_names(1, 1)) as bed:
        processes: list[int] = []

        def look() -> None:
            run_job(bed, zmq, config, timeout_s=100)
            processes.append(len(bed._children))

        beside(bed, neighbour(zmq, config), look)
        assert processes == [3]  # those of the other job, which goes on
        assert bed._children == []
