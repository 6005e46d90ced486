"""What happens to a bed while a job runs on it: links that change."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from scripts.lab.bed.bed import LoopbackBed


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


def drawn_rates(low: float, high: float) -> Iterator[float]:
    """One after another, the same in every run."""
    chance = random.Random(6)
    return (chance.uniform(low, high) for _ in itertools.count())


def random_rates(low: float, high: float, every_s: float) -> Disturbance:
    """Every host's link between `low` and `high`, the same for all."""

    def disturbance(bed: LoopbackBed, milestones: Milestones) -> None:
        _change_links(bed, milestones, drawn_rates(low, high), every_s)

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
