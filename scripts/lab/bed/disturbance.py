"""What happens to a bed while a job runs on it: links that change, flows beside it."""

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

from pslite_ext.launch.supervise import Child
from scripts.lab.bed.bed import LoopbackBed
from scripts.lab.bed.namespaces import LabError


@dataclass(frozen=True)
class Milestones:
    """How far the disturbance and the job have come."""

    ready: threading.Event = field(default_factory=threading.Event)  # the job may start
    begun: threading.Event = field(default_factory=threading.Event)  # it is measured
    over: threading.Event = field(default_factory=threading.Event)

    def end(self) -> None:
        self.over.set()
        self.begun.set()


# Runs beside the job until that is over; the job starts when the disturbance is ready, or has
# returned. What it raises fails the case.
Disturbance = Callable[[LoopbackBed, Milestones], None]
STREAM = Path(__file__).resolve().parent / "tcp_stream.py"
STREAM_PORT = 9900
_LOOK_S = 0.2
_START_S = 60.0  # for a flow to find its port


def _change_links(
    bed: LoopbackBed,
    milestones: Milestones,
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
        milestones.ready.set()
        milestones.begun.wait()
        if milestones.over.wait(every_s):
            return


def random_rates(low: float, high: float, every_s: float) -> Disturbance:
    """Every host's link between `low` and `high`, the same for all, the same in every run."""

    def disturbance(bed: LoopbackBed, milestones: Milestones) -> None:
        chance = random.Random(6)
        rates = (chance.uniform(low, high) for _ in itertools.count())
        _change_links(bed, milestones, rates, every_s)

    return disturbance


class Steps:
    """All links change from one rate to the next, over and over; it notes when."""

    def __init__(self, rates: Sequence[float], every_s: float) -> None:
        self.rates = tuple(rates)
        self.every_s = every_s
        self.changes: list[tuple[float, float]] = []  # (clock, rate)

    def __call__(self, bed: LoopbackBed, milestones: Milestones) -> None:
        self.changes.clear()
        rates = itertools.cycle(self.rates)
        _change_links(bed, milestones, rates, self.every_s, self._note)

    def _note(self, rate: float) -> None:
        self.changes.append((time.monotonic(), rate))


def slow_link(host: str, rate: float) -> Disturbance:
    def disturbance(bed: LoopbackBed, _milestones: Milestones) -> None:
        bed.set_rate(host, rate, rate)

    return disturbance


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


def flows(pairs: Sequence[tuple[str, str]]) -> Disturbance:
    """Background flows, each from the first host of a pair to the second."""

    def disturbance(bed: LoopbackBed, milestones: Milestones) -> None:
        started: list[Child] = []
        try:
            for number, (sender, receiver) in enumerate(pairs):
                started += start_flow(bed, sender, receiver, STREAM_PORT + number)
            milestones.ready.set()
            while not milestones.over.wait(_LOOK_S):
                if any(process.poll() is not None for process in started):
                    raise LabError("a background flow has ended before the job")
        finally:
            bed.processes.end(started)

    return disturbance
