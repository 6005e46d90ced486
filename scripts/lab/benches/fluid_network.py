"""Transfers that share links in virtual time, as TCP connections that live long do: max-min fairly.

A transfer uses its sender's way out and its receiver's way in; one that is passed on as it comes
uses those of all hosts on its way, at one rate. Within a host it takes no time. A way's rate holds
until the next change. What it does not carry it saves up, as far as a burst. Packets, queues and
round trips are not modelled.
"""

from __future__ import annotations

import heapq
import itertools
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Call = Callable[[], None]
Rates = Callable[[float], Sequence[tuple[float, float]]]  # at a time: each host's out and in
# Of connections that share a link, none gets exactly its share for the length of a transfer.
UNEVEN = (0.5, 1.5)
_LEFT = 1e-6  # bytes: less is rounding


@dataclass(eq=False)
class Transfer:
    hosts: Sequence[int]  # on its way, each once
    left: float  # bytes
    done: Call
    limit: float = math.inf  # bytes a second
    weight: float = 1.0  # its share, beside others
    rate: float = 0.0

    @property
    def ways(self) -> list[tuple[int, int]]:
        return _ways(self.hosts)


def _ways(hosts: Sequence[int]) -> list[tuple[int, int]]:
    """A host, and 0: out, 1: in."""
    return [*((host, 0) for host in hosts[:-1]), *((host, 1) for host in hosts[1:])]


class FluidNetwork:
    """`rates`: in bytes a second. `every_s`: so often they change. `burst`: so many bytes pass at
    once where nothing has passed for a while. `seed`: of how unevenly links are shared."""

    def __init__(self, rates: Rates, every_s: float, burst: float = 0.0, seed: int = 1) -> None:
        self.now = 0.0
        self._rates, self._every_s, self._burst = rates, every_s, burst
        self._used_until: dict[tuple[int, int], float] = {}
        self._transfers: list[Transfer] = []
        self._calls: list[tuple[float, int, Call]] = []
        self._order = itertools.count()
        self._random = random.Random(seed)
        self._fair = False  # whether all have the rates that they should have
        self._stopped = False

    def at(self, time: float, call: Call) -> None:
        heapq.heappush(self._calls, (max(time, self.now), next(self._order), call))

    def after(self, seconds: float, call: Call) -> None:
        self.at(self.now + seconds, call)

    def send(
        self, source: int, target: int, size: float, done: Call, limit: float = math.inf
    ) -> Transfer:
        """From now on; `done` is called when all of it is there."""
        hosts = [source] if source == target else [source, target]
        return self.along(hosts, size, done, limit)

    def along(
        self, hosts: Sequence[int], size: float, done: Call, limit: float = math.inf
    ) -> Transfer:
        """The same, by way of others, who pass it on as it comes."""
        transfer = Transfer(hosts, size, done, limit, self._random.uniform(*UNEVEN))
        if len(hosts) == 1:
            self.at(self.now, done)
        else:
            transfer.left = max(0.0, size - self.at_once(hosts))
            self._transfers.append(transfer)
            self._fair = False
        return transfer

    def at_once(self, hosts: Sequence[int]) -> float:
        """What all ways between them would let through, saved up while they were idle."""
        ways = _ways(hosts)
        if self._burst == 0 or any(way in ways for t in self._transfers for way in t.ways):
            return 0.0
        rates = self._rates(self.now)
        idle_s = {way: self.now - self._used_until.get(way, -math.inf) for way in ways}
        return min(min(self._burst, idle_s[way] * rates[way[0]][way[1]]) for way in ways)

    def lift_limit(self, transfer: Transfer) -> None:
        transfer.limit = math.inf
        self._fair = False

    def stop(self) -> None:
        self._stopped = True

    def run(self, until: float = math.inf) -> None:
        """What begins later than that, or once it was stopped, is left out."""
        while not self._stopped:
            if not self._fair:
                self._share()
            change = self._every_s * (math.floor(self.now / self._every_s + 1e-9) + 1)
            due = min([self.now + t.left / t.rate for t in self._transfers], default=math.inf)
            next_s = min(due, change, self._calls[0][0] if self._calls else math.inf)
            if next_s > until:
                return
            for transfer in self._transfers:
                transfer.left -= (next_s - self.now) * transfer.rate
            self.now = next_s
            self._fair = self._fair and next_s < change
            over = [t for t in self._transfers if t.left <= _LEFT + 1e-9 * t.rate]
            if over:
                self._transfers = [t for t in self._transfers if t not in over]
                self._fair = False
                for transfer in over:
                    self._used_until.update((way, self.now) for way in transfer.ways)
                for transfer in over:
                    transfer.done()
            while self._calls and self._calls[0][0] <= self.now and not self._stopped:
                heapq.heappop(self._calls)[2]()

    def _share(self) -> None:
        """The way that leaves least for each of its transfers decides for them; then the next."""
        self._fair = True
        rates = self._rates(self.now)
        room: dict[tuple[int, int], float] = {}
        weights: dict[tuple[int, int], float] = {}
        open_ = list(self._transfers)
        for transfer in open_:
            for way in transfer.ways:
                room[way] = rates[way[0]][way[1]]
                weights[way] = weights.get(way, 0.0) + transfer.weight
        while open_:
            share = min(room[way] / weights[way] for t in open_ for way in t.ways)
            share = min(share, min(t.limit / t.weight for t in open_))
            still: list[Transfer] = []
            decided: list[Transfer] = []
            for transfer in open_:
                tight = any(room[w] <= share * weights[w] * (1 + 1e-9) for w in transfer.ways)
                tight = tight or transfer.limit <= share * transfer.weight * (1 + 1e-9)
                (decided if tight else still).append(transfer)
            for transfer in decided:
                transfer.rate = share * transfer.weight
                for way in transfer.ways:
                    room[way] = max(0.0, room[way] - transfer.rate)
                    weights[way] -= transfer.weight
            open_ = still
