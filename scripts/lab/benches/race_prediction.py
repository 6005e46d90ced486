"""How many gradients a race would see, without training, in one process and in virtual time.

Rates and stragglers are the lab's draws. MLfabric's plans are its planner's, and so are the trees
by which models travel. Transfers share links (fluid_network.py); those of a plan start as planned,
at its pace. LETTER_S was measured. That connections share links unevenly (UNEVEN) was assumed after
a look at the rate of plain async, which would otherwise be a third too slow. Left out: processors,
what TCP takes to react, bursts, replicas, and that a batch which takes far too long is given up.
"""

from __future__ import annotations

import json
import random
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from pslite_ext import _core
from pslite_ext.fabric.options import ALL_OF_IT
from scripts.lab.bed.drawn_network import EVERY_S, drawn
from scripts.lab.benches.case import TCP_SHARE
from scripts.lab.benches.fluid_network import FluidNetwork
from scripts.lab.systems.tree import PIECE, parents
from scripts.lab.workloads.race import BYTES
from scripts.lab.workloads.stragglers import slowness

LETTER_S = 0.003  # a letter from node to node; measured, thirty-three processes on two cores
LIMITS = _core.fabric_limits()
SERVER = 0  # its host, and the scheduler's; two workers are on each of the others


@dataclass(frozen=True)
class Conditions:
    stragglers: str
    network: str
    scale: float
    workers: int = 30
    compute_s: float = 0.1
    lag_s: float = 0.2  # so late does the scheduler know of new rates
    seed: int = 1

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
    ways = drawn(conditions.network, conditions.hosts, number, conditions.seed)
    share = conditions.scale * TCP_SHARE
    return [(way.out * share, way.into * share) for way in ways]


def host_of(worker: int) -> int:
    return 1 + worker // 2


class Simulated(ABC):
    """Workers that compute whenever they have what they need. A subclass says what that is."""

    def __init__(self, conditions: Conditions) -> None:
        self.conditions = conditions
        self.network = FluidNetwork(conditions.bytes, EVERY_S)
        self.iterations = [0] * conditions.workers

    def gradients(self, seconds: float) -> int:
        self.begin()
        self.network.run(seconds)
        return sum(self.iterations)

    def compute(self, worker: int) -> None:
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

    def begin(self) -> None:
        for worker in range(self.conditions.workers):
            self._reply(worker)

    def push(self, worker: int) -> None:
        self.network.send(host_of(worker), SERVER, BYTES, partial(self._reply, worker))

    def _reply(self, worker: int) -> None:
        self.network.send(SERVER, host_of(worker), BYTES, partial(self.compute, worker))


class Ring(Simulated):
    """2 (n - 1) steps; in each, everybody sends an n-th to the next one."""

    def begin(self) -> None:
        n = self.conditions.workers
        self._sent, self._got = [0] * n, [0] * n  # steps of the round under way, or the next
        self._sends, self._takes_part = [False] * n, [False] * n
        for worker in range(n):
            self.compute(worker)

    def push(self, worker: int) -> None:
        self._takes_part[worker] = True
        self._send(worker)

    def _send(self, worker: int) -> None:
        """A step's piece is what the step before has brought."""
        n = self.conditions.workers
        steps = 2 * (n - 1)
        if not self._takes_part[worker] or self._sends[worker]:
            return
        if self._sent[worker] < steps and self._sent[worker] <= self._got[worker]:
            self._sends[worker] = True
            hosts = host_of(worker), host_of((worker + 1) % n)
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
        self._send(worker)
        self._send(after)


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
        self._round()

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


class Fabric(Simulated):
    """`bound`: of delay; None: all in step."""

    def __init__(self, conditions: Conditions, bound: int | None) -> None:
        super().__init__(conditions)
        self._bound = bound
        self._random = random.Random(1)
        self._version = 0
        self._got = [0] * conditions.workers  # versions
        self._waiting: list[int] = []  # for a plan
        self._order: list[int] = []  # of the batch under way
        self._committed = 0  # of them
        self._arrived: set[int] = set()
        self._members: dict[int, set[int]] = {}  # by aggregator: on their way to it
        self._gathered: dict[int, Callable[[], None]] = {}  # and what follows
        self._askers: list[int] = []
        self._leaving = 0  # models, from the server
        self._tree_asked = False

    def begin(self) -> None:
        for worker in range(self.conditions.workers):
            self._ask(worker)

    def push(self, worker: int) -> None:
        self.network.after(LETTER_S, partial(self._request, worker))

    def _request(self, worker: int) -> None:
        self._waiting.append(worker)
        self._plan_if_time()

    def _plan_if_time(self) -> None:
        least = 1 if self._bound is not None else self.conditions.workers
        while not self._order and len(self._waiting) >= least:
            self._plan()

    def _batch(self, workers: Sequence[int], passing: Sequence[int]) -> dict[str, Any]:
        known = self.conditions.bits(self.network.now - self.conditions.lag_s)
        update = {"bytes": BYTES, "available_s": 0, "norm": 0}
        return {
            "hosts": {f"h{i}": {"out": [[0, o]], "in": [[0, n]]} for i, (o, n) in enumerate(known)},
            "placement": {
                "server": f"h{SERVER}",
                **{f"{w}": f"h{host_of(w)}" for w in range(self.conditions.workers)},
            },
            "server": "server",
            "aggregators": [f"{w}" for w in passing],
            "replica": None,
            "mode": "sync" if self._bound is None else "async",
            "delay_bound": self._bound or 1,
            "version": self._version,
            "momentum": 0,
            "updates": [
                {"id": f"{w}", "worker": f"{w}", "version": self._got[w], **update} for w in workers
            ],
        }

    def _plan(self) -> None:
        batch, self._waiting = self._waiting, []
        everybody = range(self.conditions.workers)
        aggregators = self._random.sample(everybody, min(len(everybody), ALL_OF_IT.aggregators))
        text = json.dumps(self._batch(batch, aggregators)).encode()
        plan = json.loads(_core.fabric_plan(text))
        for drop in plan["dropped"]:
            self._settle(int(drop["id"]), letters=1)
        self._order = [int(update) for update in plan["order"]]
        self._arrived.clear()
        self._members.clear()
        hops = [(hop, [int(update) for update in hop["updates"]]) for hop in plan["transfers"]]
        for hop, updates in hops:
            if hop["to"] != "server":
                self._members.setdefault(int(hop["to"]), set()).update(updates)
        planned_s = self.network.now
        for hop, updates in hops:
            source = int(hop["from"])
            start_s = planned_s + (hop["pieces"][0][0] if hop["pieces"] else 0.0)
            begin = partial(self._begin, hop, updates, start_s)
            if hop["to"] == "server" and self._members.get(source, set()) >= set(updates):
                self._gathered[source] = begin
            else:
                self.network.after(LETTER_S, begin)

    def _begin(self, hop: dict[str, Any], updates: Sequence[int], start_s: float) -> None:
        self.network.at(start_s, partial(self._send, hop, updates))

    def _send(self, hop: dict[str, Any], updates: Sequence[int]) -> None:
        source, target = host_of(int(hop["from"])), SERVER
        there = partial(self._at_server, updates)
        if hop["to"] != "server":
            target = host_of(int(hop["to"]))
            there = partial(self._at_aggregator, int(hop["to"]), updates)
        if source == target:
            self.network.send(source, target, hop["bytes"], there)
            return
        planned_s = hop["pieces"][-1][1] - hop["pieces"][0][0]
        most = LIMITS["pace_headroom"] * hop["bytes"] + LIMITS["pace_quantum_bytes"]
        transfer = self.network.send(source, target, hop["bytes"], there, most / planned_s)
        self.network.after(planned_s, partial(self.network.lift_limit, transfer))

    def _at_aggregator(self, aggregator: int, updates: Sequence[int]) -> None:
        self._members[aggregator] -= set(updates)
        if not self._members[aggregator]:
            self._gathered.pop(aggregator)()

    def _at_server(self, updates: Sequence[int]) -> None:
        """Commits are made in order; those of a round, together."""
        self._arrived.update(updates)
        whole = len(self._arrived) == len(self._order)
        if self._bound is None and not whole:
            return
        while self._committed < len(self._order) and self._order[self._committed] in self._arrived:
            self._settle(self._order[self._committed], letters=2)
            self._committed += 1
            self._version += self._bound is not None
        if self._committed == len(self._order):
            self._version += self._bound is None
            self._committed = 0
            self.network.after(LETTER_S, self._end)

    def _end(self) -> None:
        self._order = []
        self._plan_if_time()

    def _settle(self, worker: int, letters: int) -> None:
        """Its worker hears what became of it, and asks for the model."""
        self.network.after((letters + 1) * LETTER_S, partial(self._ask, worker))

    def _ask(self, worker: int) -> None:
        self._askers.append(worker)
        self._answer()

    def _answer(self) -> None:
        if self._tree_asked or self._leaving > LIMITS["still_leaving"] or not self._askers:
            return
        ready = list(self._askers)
        if len(ready) < LIMITS["tree_least"]:
            self._serve([("server", worker) for worker in ready])
        else:
            self._tree_asked = True
            self.network.after(2 * LETTER_S, partial(self._serve, self._tree(ready)))

    def _tree(self, askers: Sequence[int]) -> list[tuple[str, int]]:
        """As live/model_tree.h: who passes on has the fastest way out, one of a host."""
        out = {w: self.conditions.bits(self.network.now)[host_of(w)][0] for w in askers}
        first = {host_of(w): w for w in reversed(askers)}
        most = int(LIMITS["distributors_most"])
        passing = sorted(first.values(), key=lambda w: (-out[w], w))[:most]
        said = _core.fabric_tree(json.dumps(self._batch(askers, passing)).encode())
        edges: dict[int, str] = {}
        for to, source in re.findall(r"^(\d+): from (\w+),", said, re.MULTILINE):
            edges.setdefault(int(to), source)
        return [(source, to) for to, source in edges.items()]

    def _serve(self, edges: Sequence[tuple[str, int]]) -> None:
        self._tree_asked = False
        self._askers = [w for w in self._askers if w not in {to for _, to in edges}]
        onward: dict[int, list[int]] = {}
        for source, to in edges:
            if source != "server":
                onward.setdefault(int(source), []).append(to)

        def take(worker: int, version: int, straight: bool) -> None:
            self._leaving -= straight
            self._got[worker] = version
            self.compute(worker)
            for other in onward.get(worker, ()):
                there = partial(take, other, version, False)
                self.network.send(host_of(worker), host_of(other), BYTES, there)
            if straight:
                self._answer()

        for source, to in edges:
            if source == "server":
                self._leaving += 1
                there = partial(take, to, self._version, True)
                self.network.send(SERVER, host_of(to), BYTES, there)


def rival(name: str, conditions: Conditions) -> Simulated | None:
    """By the name that its rows have; None: it is not simulated."""
    if name in ("ring gloo", "ring mpi"):
        return Ring(conditions)
    if name in ("tree", "async"):
        return {"tree": Tree, "async": Async}[name](conditions)
    if name == "fabric S":
        return Fabric(conditions, None)
    if found := re.fullmatch(r"fabric A-(\d+)", name):
        return Fabric(conditions, int(found[1]))
    return None
