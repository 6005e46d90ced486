"""What happens to a bed while a job runs on it: links that change, flows and jobs beside it."""

from __future__ import annotations

import itertools
import queue
import random
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bed import LoopbackBed
from job import PORT, Job
from measured import Config
from namespaces import LabError
from systems import System

from pslite_ext.launch.supervise import Child


@dataclass(frozen=True)
class Course:
    """How far the weather and the job have come."""

    ready: threading.Event = field(default_factory=threading.Event)  # the job may start
    begun: threading.Event = field(default_factory=threading.Event)  # it is measured
    over: threading.Event = field(default_factory=threading.Event)

    def end(self) -> None:
        self.over.set()
        self.begun.set()


# Runs beside the job until that is over; the job starts when the weather is ready, or has returned.
# What it raises fails the case.
Weather = Callable[[LoopbackBed, Course], None]
STREAM = Path(__file__).resolve().parent / "stream.py"
STREAM_PORT = 9900
_LOOK_S = 0.2
_START_S = 120.0  # for a job to begin
_ENDLESS = 1_000_000  # rounds


def _change_links(
    bed: LoopbackBed,
    course: Course,
    rates: Iterable[float],
    every_s: float,
    changed: Callable[[float], None] = lambda _rate: None,
) -> None:
    """All hosts' links take one rate after another until the job is over.

    The first rate holds until `every_s` after the measurement's begin.
    """
    for rate in rates:
        for host in bed.hosts:
            bed.set_rate(host, rate, rate)
        changed(rate)
        course.ready.set()
        course.begun.wait()
        if course.over.wait(every_s):
            return


def random_rates(low: float, high: float, every_s: float) -> Weather:
    """Every host's link between `low` and `high`, the same for all, the same in every run."""

    def weather(bed: LoopbackBed, course: Course) -> None:
        chance = random.Random(6)
        rates = (chance.uniform(low, high) for _ in itertools.count())
        _change_links(bed, course, rates, every_s)

    return weather


class Steps:
    """All links change from one rate to the next, over and over; it notes when."""

    def __init__(self, rates: Sequence[float], every_s: float) -> None:
        self.rates = tuple(rates)
        self.every_s = every_s
        self.changes: list[tuple[float, float]] = []  # (clock, rate)

    def __call__(self, bed: LoopbackBed, course: Course) -> None:
        self.changes.clear()
        rates = itertools.cycle(self.rates)
        _change_links(bed, course, rates, self.every_s, self._note)

    def _note(self, rate: float) -> None:
        self.changes.append((time.monotonic(), rate))


def slow_link(host: str, rate: float) -> Weather:
    def weather(bed: LoopbackBed, _course: Course) -> None:
        bed.set_rate(host, rate, rate)

    return weather


def start_flow(
    bed: LoopbackBed, sender: str, receiver: str, port: int = STREAM_PORT
) -> list[Child]:
    """A TCP stream that takes what it can get, until its two processes are ended."""
    program = [sys.executable, str(STREAM)]
    said: queue.SimpleQueue[str] = queue.SimpleQueue()
    sink = bed.start(receiver, [*program, "sink", str(port)], told=said.put)
    if (first := said.get(timeout=_START_S)) != "listening":
        raise LabError(f"no stream can end on {receiver}, port {port}: {first}")
    source = bed.start(sender, [*program, "source", bed.address(receiver), str(port)])
    return [sink, source]


def flows(pairs: Sequence[tuple[str, str]]) -> Weather:
    """Background flows, each from the first host of a pair to the second."""

    def weather(bed: LoopbackBed, course: Course) -> None:
        started: list[Child] = []
        try:
            for number, (sender, receiver) in enumerate(pairs):
                started += start_flow(bed, sender, receiver, STREAM_PORT + number)
            course.ready.set()
            while not course.over.wait(_LOOK_S):
                if any(process.poll() is not None for process in started):
                    raise LabError("a background flow has ended before the job")
        finally:
            bed.processes.end(started)

    return weather


def neighbour(system: System, config: Config) -> Weather:
    """Another job like it on the same hosts, from before the measured one until it is over."""
    endless = Config(**{**vars(config), "rounds": _ENDLESS, "sample_s": 0.0})

    def weather(bed: LoopbackBed, course: Course) -> None:
        job = Job(bed, system, endless, env={"DMLC_PS_ROOT_PORT": str(PORT + 1)})
        deadline = time.monotonic() + _START_S
        try:
            while not course.over.wait(_LOOK_S):
                job.check_alive()
                if job.has_said("begin"):
                    course.ready.set()
                elif time.monotonic() > deadline:
                    raise LabError(f"the neighbour has not begun in {_START_S:g} s")
        finally:
            job.end()

    return weather
