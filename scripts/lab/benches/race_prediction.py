"""How many gradients a race would see, without training, in one process and in virtual time.

Here are the conditions and MLfabric's rivals; fabric_prediction.py has MLfabric itself. Rates and
stragglers are the lab's draws. Transfers share links (fluid_network.py). That connections share
links unevenly (UNEVEN) was assumed after a look at the rate of plain async, which would otherwise
be a third too slow. A way that was idle lets a burst through. Left out: processors, and what TCP
takes to react.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache, partial

from scripts.lab.bed.bed import BURST_BYTES_MIN
from scripts.lab.bed.drawn_network import EVERY_S, drawn
from scripts.lab.benches.case import TCP_SHARE
from scripts.lab.benches.fluid_network import FluidNetwork
from scripts.lab.systems.tree import PIECE, parents
from scripts.lab.workloads.race import BYTES
from scripts.lab.workloads.stragglers import slowness

SERVER = 0  # its host, and the scheduler's; two workers are on each of the others


@dataclass(frozen=True)
class Conditions:
    stragglers: str
    network: str
    scale: float
    workers: int = 30
    compute_s: float = 0.1
    lag_s: float = 0.2  # so late does the scheduler know of new rates
    begun_within_s: float = 0.1  # measured, thirty processes on two cores
    burst: float = BURST_BYTES_MIN * TCP_SHARE
    sharing: int = 1  # seed of how unevenly links are shared
    seed: int = 1
    servers: int = 1  # as one host, with as many links, all as fast as the slowest

    @property
    def hosts(self) -> int:
        return 1 + (self.workers + 1) // 2

    def bits(self, time: float) -> list[tuple[float, float]]:
        """Each host's rates out and in, in bit/s of data."""
        return _drawn_bits(self, max(0, int(time / EVERY_S + 1e-9)))

    def bytes(self, time: float) -> list[tuple[float, float]]:
        return [(out / 8, into / 8) for out, into in self.bits(time)]

    def computes_s(self, worker: int, iteration: int) -> float:
        return self.compute_s * slowness(self.stragglers, worker, iteration, self.seed)


@cache
def _drawn_bits(conditions: Conditions, number: int) -> list[tuple[float, float]]:
    hosts = conditions.hosts
    ways = drawn(conditions.network, hosts + conditions.servers - 1, number, conditions.seed)
    share = conditions.scale * TCP_SHARE
    bits = [(way.out * share, way.into * share) for way in ways]
    out, into = (conditions.servers * min(its) for its in zip(bits[SERVER], *bits[hosts:]))
    return [(out, into), *bits[1:hosts]]


def host_of(worker: int) -> int:
    return 1 + worker // 2


class Simulated(ABC):
    """Workers that compute whenever they have what they need. A subclass says what that is."""

    together = True  # all have the same model, and worker 0 looks at it for all (race.py)

    def __init__(self, conditions: Conditions) -> None:
        self.conditions = conditions
        self.network = FluidNetwork(conditions.bytes, EVERY_S, conditions.burst, conditions.sharing)
        self.iterations = [0] * conditions.workers
        self._begun = 0  # as a race counts them
        self._enough = math.inf

    def gradients(self, seconds: float) -> int:
        self.begin()
        self.network.run(seconds)
        return sum(self.iterations)

    def begun_at(self, gradients: int) -> float:
        """When so many were begun: so a race knows how far it is when it is over."""
        self._enough = gradients
        self.begin()
        self.network.run()
        return self.network.now

    def compute(self, worker: int) -> None:
        if worker == 0 or not self.together:
            self._begun += self.conditions.workers if self.together else 1
            if self._begun >= self._enough:
                self.network.stop()
        seconds = self.conditions.computes_s(worker, self.iterations[worker])
        self.network.after(seconds, partial(self._computed, worker))

    def _computed(self, worker: int) -> None:
        self.iterations[worker] += 1
        self.push(worker)

    @abstractmethod
    def begin(self) -> None: ...

    @abstractmethod
    def push(self, worker: int) -> None: ...


class Async(Simulated):
    """A server that adds what comes and replies with the model."""

    together = False

    def begin(self) -> None:
        for worker in range(self.conditions.workers):
            begun_s = self.conditions.begun_within_s * worker / self.conditions.workers
            self.network.after(begun_s, partial(self._reply, worker))

    def push(self, worker: int) -> None:
        self.network.send(host_of(worker), SERVER, BYTES, partial(self._reply, worker))

    def _reply(self, worker: int) -> None:
        self.network.send(SERVER, host_of(worker), BYTES, partial(self.compute, worker))


class Ring(Simulated):
    """2 (n - 1) steps; in each, everybody sends an n-th to the next one, once that one waits for
    it: Gloo asks for two halves of a piece ahead, so nobody is more than a step ahead."""

    def begin(self) -> None:
        n = self.conditions.workers
        self._sent, self._got = [0] * n, [0] * n  # steps of the round under way, or the next
        self._sends, self._takes_part = [False] * n, [False] * n
        for worker in range(n):
            self.network.after(self.conditions.begun_within_s, partial(self.compute, worker))

    def push(self, worker: int) -> None:
        self._takes_part[worker] = True
        self._send(worker)
        self._send((worker - 1) % self.conditions.workers)

    def _send(self, worker: int) -> None:
        """A step's piece is what the step before has brought."""
        n = self.conditions.workers
        steps, after = 2 * (n - 1), (worker + 1) % n
        if not self._takes_part[worker] or self._sends[worker]:
            return
        if self._sent[worker] < steps and self._sent[worker] <= self._got[worker]:
            if not self._takes_part[after] or self._sent[worker] > self._sent[after] + 1:
                return
            self._sends[worker] = True
            hosts = host_of(worker), host_of(after)
            self.network.send(*hosts, BYTES / n, partial(self._over, worker))
        elif self._sent[worker] == steps and self._got[worker] >= steps:
            self._sent[worker], self._takes_part[worker] = 0, False
            self._got[worker] -= steps
            self.compute(worker)

    def _over(self, worker: int) -> None:
        after = (worker + 1) % self.conditions.workers
        self._sends[worker] = False
        self._sent[worker] += 1
        self._got[after] += 1
        for one in (worker, after, (worker - 1) % self.conditions.workers):
            self._send(one)


class Tree(Simulated):
    """Pieces go up the tree of systems/tree.py, and down it as soon as they are sums."""

    def begin(self) -> None:
        self._above = parents([str(host_of(w)) for w in range(self.conditions.workers)])
        self._below: list[list[int]] = [[] for _ in self._above]
        for worker, parent in enumerate(self._above):
            if parent is not None:
                self._below[parent].append(worker)
        self._sizes = [min(4 * PIECE, BYTES - at) for at in range(0, BYTES, 4 * PIECE)]
        self._edges: dict[tuple[int, int], list[int]] = {}  # pieces that wait; the first is sent
        self.network.after(self.conditions.begun_within_s, self._round)

    def _round(self) -> None:
        workers = self.conditions.workers
        # By worker and piece: so many parts are missing.
        self._missing = [[1 + len(self._below[w])] * len(self._sizes) for w in range(workers)]
        self._coming = [len(self._sizes)] * workers
        self._not_done = workers
        for worker in range(workers):
            self.compute(worker)

    def push(self, worker: int) -> None:
        for piece in range(len(self._sizes)):
            self._add(worker, piece)

    def _add(self, worker: int, piece: int) -> None:
        self._missing[worker][piece] -= 1
        if self._missing[worker][piece] > 0:
            return
        parent = self._above[worker]
        if parent is None:
            self._summed(worker, piece)
        else:
            self._send(worker, parent, piece)

    def _summed(self, worker: int, piece: int) -> None:
        for child in self._below[worker]:
            self._send(worker, child, piece)
        self._coming[worker] -= 1
        if self._coming[worker] == 0:
            self._not_done -= 1
            if self._not_done == 0:
                self._round()

    def _send(self, source: int, target: int, piece: int) -> None:
        waiting = self._edges.setdefault((source, target), [])
        waiting.append(piece)
        if len(waiting) == 1:
            self._next(source, target)

    def _next(self, source: int, target: int) -> None:
        size = self._sizes[self._edges[source, target][0]]
        there = partial(self._there, source, target)
        self.network.send(host_of(source), host_of(target), size, there)

    def _there(self, source: int, target: int) -> None:
        waiting = self._edges[source, target]
        piece = waiting.pop(0)
        if waiting:
            self._next(source, target)
        (self._add if self._above[source] == target else self._summed)(target, piece)
