"""A network whose hosts' ways in and out change at random, as MLfabric's authors had it.

Every EVERY_S seconds each host's rate in, and its rate out, are drawn anew and on their own. What
is drawn comes from the seed, the host's place and the number of the draw alone: so it is the same
for all systems that are compared, however long each of them runs.
"""

from __future__ import annotations

import json
import random
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from scripts.lab.bed.bed import LoopbackBed
from scripts.lab.bed.disturbance import Milestones

EVERY_S = 5.0
RATES = (1e9, 2.5e9, 3.3e9, 5e9, 10e9)  # bit/s, before they are scaled down
NETWORKS = {
    "N1": (0.0, 0.0, 0.0, 0.1, 0.9),
    "N2": (0.0, 0.1, 0.1, 0.1, 0.7),
    "N3": (0.5, 0.0, 0.0, 0.0, 0.5),
    # In which the authors saw most harm in an old view of the network.
    "p1 = .2": (0.2, 0.0, 0.0, 0.0, 0.8),
}
_TICK_S = 0.05
_AGAIN_S = 3.0  # what a feed says holds for 10 s


class Ways(NamedTuple):
    """A host's rates in bit/s."""

    out: float
    into: float


def drawn(network: str, hosts: int, number: int, seed: int) -> list[Ways]:
    """The draw with that number, unscaled."""
    found = []
    for host in range(hosts):
        chance = random.Random(f"{seed} {network} {number} {host}")
        found.append(Ways(*chance.choices(RATES, NETWORKS[network], k=2)))
    return found


@dataclass
class DrawnNetwork:
    """Changes a bed while a job runs. With a `feed`, tells a scheduler of it `lag_s` later."""

    network: str
    scale: float  # of RATES
    seed: int = 1
    feed: Path | None = None
    lag_s: float = 0.2
    share: float = 1.0  # of a rate, that is left for data
    changes: list[tuple[float, list[Ways]]] = field(default_factory=list)  # since when; unscaled

    def __call__(self, bed: LoopbackBed, milestones: Milestones) -> None:
        self.changes.clear()
        if self.feed is not None:
            self.feed.write_text("")
        self._change(bed)
        self._tell(bed, self.changes[-1][1])
        milestones.ready.set()
        told_at = time.monotonic()
        while not milestones.begun.wait(_TICK_S):
            if time.monotonic() > told_at + _AGAIN_S:
                told_at = time.monotonic()
                self._tell(bed, self.changes[-1][1])
        begin = time.monotonic()
        self.changes[0] = (begin, self.changes[0][1])
        known, news = self.changes[0][1], deque([self.changes[0]])
        while not milestones.over.wait(_TICK_S):
            now = time.monotonic()
            if now >= begin + EVERY_S * len(self.changes):
                self._change(bed)
                news.append(self.changes[-1])
            heard = bool(news) and now >= news[0][0] + self.lag_s
            if heard:
                known = news.popleft()[1]
            if heard or now > told_at + _AGAIN_S:
                told_at = now
                self._tell(bed, known)

    def _change(self, bed: LoopbackBed) -> None:
        before: Sequence[Ways | None] = [None] * len(bed.hosts)
        if self.changes:
            before = self.changes[-1][1]
        rates = drawn(self.network, len(bed.hosts), len(self.changes), self.seed)
        self.changes.append((time.monotonic(), rates))
        for host, ways, old in zip(bed.hosts, rates, before):
            if ways != old:
                bed.set_rate(host, ways.out * self.scale, ways.into * self.scale)

    def _tell(self, bed: LoopbackBed, rates: Sequence[Ways]) -> None:
        if self.feed is None:
            return
        of_data = self.scale * self.share
        lines = [
            {"host": bed.address(host), "in": ways.into * of_data, "out": ways.out * of_data}
            for host, ways in zip(bed.hosts, rates)
        ]
        with self.feed.open("a") as feed:
            feed.write("".join(json.dumps(line) + "\n" for line in lines))

    def at(self, moment: float) -> list[Ways]:
        """What held then, by host."""
        held = self.changes[0][1]
        for since, rates in self.changes:
            if since <= moment:
                held = rates
        return held
