"""Whose part of each sum came last, by the clock of the server that made it.

A push comes with its first packet: servers hold back the last ones of workers that are ahead. Where
workers share a host, the leader's push comes when all of the host have. Who was last of those is
known by the leader's clock, which the host's sums have, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from tracer.format.record import Ints

SUMS_MOST = 4096  # of a node, that are kept
Place = tuple[int, int]  # step and key


@dataclass
class Sum:
    """Whose part came last, of those that are in."""

    parts: int = 0
    last_us: int = 0
    last_worker: int = -1
    second_us: int = 0  # the last but one

    def add(self, time: int, worker: int) -> None:
        self.parts += 1
        if (time, worker) > (self.last_us, self.last_worker):
            self.second_us, self.last_us, self.last_worker = self.last_us, time, worker
        else:
            self.second_us = max(self.second_us, time)

    @property
    def last_one(self) -> tuple[int, int]:
        """Who, and by how many microseconds."""
        return self.last_worker, self.last_us - self.second_us


@dataclass
class Sums:
    """Of one node's file: of a server what has come, of a worker what it has handed over."""

    found: dict[Place, Sum] = field(default_factory=dict)
    leader: int | None = None  # of a host's sums: the worker that makes them

    def add(self, step: Ints, key: Ints, time: Ints, worker: Ints) -> None:
        for number, index, when, who in zip(*(c.tolist() for c in (step, key, time, worker))):
            self.found.setdefault((number, index), Sum()).add(when, who)

    def forget(self, before_us: int, before_step: int) -> None:
        """What is older than both, and what is too much."""
        for place in list(self.found):
            if self.found[place].last_us < before_us and place[0] <= before_step:
                del self.found[place]
        for place in list(self.found)[:-SUMS_MOST]:
            del self.found[place]

    def with_leader(self, place: Place, own: Sums) -> tuple[int, int] | None:
        """Of a host's sum, who came last; None: its files do not tell yet."""
        others, handed_over = self.found.get(place), own.found.get(place)
        if others is None or handed_over is None:
            return None
        everybody = replace(others)
        everybody.add(handed_over.last_us, handed_over.last_worker)
        return everybody.last_one

    def whole(self) -> dict[Place, Sum]:
        """Those that have as many parts as any of their key."""
        most: dict[int, int] = {}
        for (_, key), one in self.found.items():
            most[key] = max(most.get(key, 0), one.parts)
        return {place: one for place, one in self.found.items() if one.parts == most[place[1]]}


def last_ones(servers: Sequence[Sums], workers: dict[int, Sums]) -> Iterator[tuple[int, int]]:
    """(who came last, by how many us) of the servers' sums; `workers` by rank."""
    hosts = {one.leader: one for one in servers if one.leader is not None}
    for server in servers:
        for place, one in server.whole().items() if server.leader is None else ():
            worker, by = one.last_one
            host, own = hosts.get(worker), workers.get(worker)
            if host is not None and own is not None:
                within = host.with_leader(place, own)
                if within is None:
                    continue
                # Had it come with the last but one of its host, the host may have been last still.
                worker, by = within[0], min(by, within[1]) if one.parts > 1 else within[1]
            elif one.parts < 2:
                continue
            yield worker, by
