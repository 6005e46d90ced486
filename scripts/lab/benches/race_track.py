"""One race: its network, who has come how far, and when the accuracy that is wanted was reached."""

from __future__ import annotations

import atexit
import functools
import json
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from scripts.lab.bed.bed import LoopbackBed
from scripts.lab.bed.disturbance import Milestones
from scripts.lab.bed.drawn_network import DrawnNetwork
from scripts.lab.systems.job import paired
from scripts.lab.workloads import digits_training
from scripts.lab.workloads.race import Race

WORKERS_MOST = 100
# Accuracy is the mean over so long, and of so many: a single look is chance, and who is slow gives
# few of them.
WINDOW_S, LOOKS_LEAST = 1.0, 3


@functools.cache
def folder() -> Path:
    """This process's, gone with it."""
    made = Path(tempfile.mkdtemp(prefix="mercury-lab-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


class Look(NamedTuple):
    """At a model that a worker has got."""

    t: float
    quality: float  # accuracy, or a log-likelihood
    gradients: int = 1  # that it stands for: where all have the same model, one looks for all


class Hop(NamedTuple):
    """A transfer between two hosts."""

    source: str
    target: str
    start: float
    to_replica: bool
    bytes: int


def _host(node: int | str) -> str:
    """Of one that MLfabric's record names."""
    places = paired(WORKERS_MOST, replica=True)
    return places[f"worker{node}" if isinstance(node, int) else f"{node}0"]


def reached_at(looks: list[Look], target: float) -> float | None:
    """When the mean of the last looks was first as good as that."""
    first = 0
    for last, look in enumerate(looks[LOOKS_LEAST - 1 :], LOOKS_LEAST - 1):
        while first <= last - LOOKS_LEAST and looks[first].t < look.t - WINDOW_S:
            first += 1
        seen = looks[first : last + 1]
        if sum(k.quality for k in seen) / len(seen) >= target:
            return look.t
    return None


@dataclass
class Track:
    network: DrawnNetwork
    stragglers: str
    rate: float  # of learning
    target: float
    at_most_s: float
    compute_s: float
    topics: bool = False
    begin: float | None = None
    looks: list[Look] = field(default_factory=list)
    took_s: float | None = None  # until the target was reached
    hosts: Sequence[str] = ()

    @property
    def digits(self) -> Path:
        return folder() / "digits.npz"

    @property
    def stop(self) -> Path:
        return folder() / "stop"

    @property
    def trace(self) -> Path:
        return folder() / "trace"

    @property
    def quality(self) -> str:
        return "log-likelihood in the end" if self.topics else "accuracy in the end"

    def told(self) -> dict[str, Any]:
        """What workers are told."""
        race = Race(
            str(self.digits),
            str(self.stop),
            self.stragglers,
            self.network.seed,
            self.compute_s,
            self.rate,
            self.topics,
        )
        return asdict(race)

    def __call__(self, bed: LoopbackBed, milestones: Milestones) -> None:
        """As a disturbance."""
        self.begin = self.took_s = None
        self.looks.clear()
        self.hosts = bed.hosts
        self.stop.unlink(missing_ok=True)
        shutil.rmtree(self.trace, ignore_errors=True)
        if not self.digits.exists():
            digits_training.load().save(self.digits)
        self.network(bed, milestones)

    def hear(self, event: dict[str, Any]) -> None:
        """What a worker says."""
        if event["event"] == "begin" and self.begin is None:
            self.begin = event["t"]
        if event["event"] != "evaluated" or self.begin is None:
            return
        self.looks.append(Look(event["t"], event["quality"], event["gradients"]))
        if self.took_s is None and (at := reached_at(sorted(self.looks), self.target)) is not None:
            self.took_s = at - self.begin
        if self.took_s is not None or event["t"] > self.begin + self.at_most_s:
            self.stop.touch()

    def curve(self) -> list[tuple[float, float, float]]:
        """Seconds, gradients that had been made, and how good the model was."""
        looks = sorted(self.looks)
        made = accumulate(look.gradients for look in looks)
        return [(k.t - (self.begin or 0.0), float(n), k.quality) for k, n in zip(looks, made)]

    def hops(self) -> list[Hop]:
        """What MLfabric has planned, between hosts."""
        lines = (self.trace / "trace_fabric.jsonl").read_text().splitlines()
        events = [json.loads(line) for line in lines]
        ahead_s = events[0]["since_1970"] - events[0]["t"] - (time.time() - time.monotonic())
        hops = [
            Hop(
                _host(e["from"]),
                _host(e["to"]),
                e["start"] + ahead_s,
                e["to"] == "replica",
                e["bytes"],
            )
            for e in events
            if e["event"] == "hop"
        ]
        return [hop for hop in hops if hop.source != hop.target]

    def is_slow(self, source: str, target: str, moment: float, rate: float) -> bool:
        """Whether what went from one host to another then passed a link of that rate or less."""
        ways = dict(zip(self.hosts, self.network.at(moment)))
        return min(ways[source].out, ways[target].into) <= rate
