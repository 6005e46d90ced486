"""MLfabric's races foretold (race_prediction.py): its own planner, in virtual time.

Plans are its planner's, and so are the ways by which models travel. Transfers of a plan start as
planned, at its pace. LETTER_S was measured. Left out: replicas, and that a batch which takes far
too long is given up, and a model that does is not waited for.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pslite_ext import _core
from pslite_ext.fabric.options import ALL_OF_IT
from scripts.lab.benches.race_prediction import (
    SERVER,
    Async,
    Conditions,
    Ring,
    Simulated,
    Tree,
    host_of,
)
from scripts.lab.workloads.race import BYTES

# Measured, thirty-three processes on two cores: a letter from node to node, in the mean; and what a
# host needs to add to a packet and pass it on, which the planner takes to be half of that.
LETTER_S = 0.001
PASS_ON_S = 0.002
LIMITS = _core.fabric_limits(BYTES)


class Fabric(Simulated):
    """`bound`: of delay; None: all in step. Groups and models are passed on whole."""

    forwarding = "whole"

    def __init__(self, conditions: Conditions, bound: int | None) -> None:
        super().__init__(conditions)
        self.together = bound is None
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
        self._leaving = 0.0  # of the server's way out, what models take that leave it
        self._tree_asked = False

    def begin(self) -> None:
        """The server waits until everybody has asked."""
        self._askers = [*range(self.conditions.workers)]
        self.network.after(self.conditions.begun_within_s, self._answer)

    def push(self, worker: int) -> None:
        self.network.after(LETTER_S, partial(self._request, worker))

    def _request(self, worker: int) -> None:
        self._waiting.append(worker)
        self._plan_if_time()

    def _plan_if_time(self) -> None:
        least = 1 if self._bound is not None else self.conditions.workers
        while not self._order and len(self._waiting) >= least:
            self._plan()

    def batch(self, workers: Sequence[int], passing: Sequence[int]) -> dict[str, Any]:
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
            "forwarding": self.forwarding,
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
        text = json.dumps(self.batch(batch, aggregators)).encode()
        plan = json.loads(_core.fabric_plan(text))
        for drop in plan["dropped"]:
            self._settle(int(drop["id"]), letters=1)
        self._order = [int(update) for update in plan["order"]]
        self._arrived.clear()
        self._members.clear()
        self._carry_out(plan["transfers"])

    def _carry_out(self, transfers: Sequence[dict[str, Any]]) -> None:
        hops = [(hop, [int(update) for update in hop["updates"]]) for hop in transfers]
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
        if self._tree_asked or self._leaving >= LIMITS["way_full"] or not self._askers:
            return
        ready = list(self._askers)
        if len(ready) < LIMITS["tree_least"]:
            self._serve_straight(ready)
        else:
            self._tree_asked = True
            tree = self._tree(ready)
            share = self._share([to for source, to in tree if source == "server"])
            self.network.after(2 * LETTER_S, partial(self._serve, tree, share))

    def _tree(self, askers: Sequence[int]) -> list[tuple[str, int]]:
        """As live/model_tree.h: who passes on has the fastest way out, one of a host."""
        out = {w: self.conditions.bits(self.network.now)[host_of(w)][0] for w in askers}
        first = {host_of(w): w for w in reversed(askers)}
        most = int(LIMITS["distributors_most"])
        passing = sorted(first.values(), key=lambda w: (-out[w], w))[:most]
        said = _core.fabric_tree(json.dumps(self.batch(askers, passing)).encode())
        edges: dict[int, str] = {}
        for to, source in re.findall(r"^(\d+): from (\w+),", said, re.MULTILINE):
            edges.setdefault(int(to), source)
        return [(source, to) for to, source in edges.items()]

    def _serve_straight(self, workers: Sequence[int]) -> None:
        """The scheduler is not asked, and so it is not known what that takes."""
        self._serve([("server", worker) for worker in workers], 1.0)

    def _share(self, workers: Sequence[int]) -> float:
        """Of the server's way out, what a model to each of these takes."""
        rates = self.conditions.bits(self.network.now)
        taken = sum(rates[host_of(worker)][1] for worker in workers) / rates[SERVER][0]
        return min(1.0, taken) / len(workers)

    def _serve(self, edges: Sequence[tuple[str, int]], share: float) -> None:
        self._tree_asked = False
        self._askers = [w for w in self._askers if w not in {to for _, to in edges}]
        onward: dict[int, list[int]] = {}
        for source, to in edges:
            if source != "server":
                onward.setdefault(int(source), []).append(to)

        def take(worker: int, version: int, straight: bool) -> None:
            self._leaving -= share * straight
            self._got[worker] = version
            self.compute(worker)
            for other in onward.get(worker, ()):
                there = partial(take, other, version, False)
                self.network.send(host_of(worker), host_of(other), BYTES, there)
            if straight:
                self._answer()

        for source, to in edges:
            if source == "server":
                self._leaving += share
                there = partial(take, to, self._version, True)
                self.network.send(SERVER, host_of(to), BYTES, there)


class FabricByPackets(Fabric):
    """Chains: the sum of all that has come so far goes on with each packet; models go down one."""

    forwarding = "packets"

    def _carry_out(self, transfers: Sequence[dict[str, Any]]) -> None:
        for hop in transfers:
            if hop["to"] == "server":  # the end of its chain; the other hops flow with it
                updates = [int(update) for update in hop["updates"]]
                start_s = self.network.now + (hop["pieces"][0][0] if hop["pieces"] else 0.0)
                flow = partial(self._flow, hop, updates, self._way([*updates]))
                begin = partial(self.network.at, start_s, flow)
                self.network.after(LETTER_S, begin)

    @staticmethod
    def _way(workers: Sequence[int], first: int | None = None) -> list[int]:
        """Each host once, those of the workers and the server's, which is first or last."""
        hosts = [host_of(worker) for worker in workers]
        hosts = [*hosts, SERVER] if first is None else [first, *hosts]
        return hosts[:1] + [to for at, to in zip(hosts, hosts[1:]) if at != to]

    def _flow(self, hop: dict[str, Any], updates: Sequence[int], hosts: Sequence[int]) -> None:
        planned_s = hop["pieces"][-1][1] - hop["pieces"][0][0]
        there = partial(self.network.after, self._passing_on_s(hosts, planned_s))
        most = LIMITS["pace_headroom"] * hop["bytes"] + LIMITS["pace_quantum_bytes"]
        done = partial(there, partial(self._at_server, updates))
        transfer = self.network.along(hosts, hop["bytes"], done, most / planned_s)
        self.network.after(planned_s, partial(self.network.lift_limit, transfer))

    def _passing_on_s(self, hosts: Sequence[int], takes_s: float) -> float:
        """What hosts that pass on make later: each adds to a packet, and sends it on when it has
        it; which takes no time where links let that much through at once."""
        packet = LIMITS["passed_on_packet_bytes"]
        packet_s = 0.0 if self.network.at_once(hosts) >= packet else takes_s * packet / BYTES
        return max(0, len(hosts) - 2) * (PASS_ON_S + packet_s)

    def _under_way(self) -> list[int]:
        return self._order[self._committed :]

    def _ready(self) -> list[int]:
        """Who asks waits for one of its host whose update is under way."""
        awaited = {host_of(worker) for worker in {*self._under_way()} - {*self._askers}}
        return [worker for worker in self._askers if host_of(worker) not in awaited]

    def _answer(self) -> None:
        """Those who ask at about the same time are answered together."""
        if not self._tree_asked and self._leaving < LIMITS["way_full"] and self._ready():
            self._tree_asked = True
            self.network.after(LETTER_S, self._answer_all)

    def _answer_all(self) -> None:
        ready = self._ready()
        if len(ready) < LIMITS["tree_least"]:
            self._serve_straight(ready)
        else:
            self.network.after(2 * LETTER_S, partial(self._down, self._tree(ready)))

    def _down(self, edges: Sequence[tuple[str, int]]) -> None:
        """Down the chain: a stretch of hosts flows at the rate of its first; what is slower behind
        it is a flow of its own."""
        self._tree_asked = False
        order = [to for _, to in edges]
        self._askers = [worker for worker in self._askers if worker not in set(order)]
        rates = self.conditions.bits(self.network.now)
        stretches: list[tuple[int, list[int]]] = []
        before, rate = SERVER, rates[SERVER][0]
        for worker in order:
            host = host_of(worker)
            slower = host != before and rates[host][1] < rate
            if slower or not stretches:
                stretches.append((before, []))
            stretches[-1][1].append(worker)
            if host != before:
                rate = min(rate, *rates[host])
            before = host
        share = self._share(order[:1])
        self._leaving += share
        lag_s = 0.0
        for number, (first, workers) in enumerate(stretches):
            hosts = self._way(workers, first)
            takes_s = BYTES * 8 / rates[hosts[0]][0]
            later = [
                (worker, lag_s + self._passing_on_s(self._way(workers[: i + 1], first), takes_s))
                for i, worker in enumerate(workers)
            ]
            lag_s = later[-1][1]
            through = partial(self._through, later, self._version, share if number == 0 else 0.0)
            self.network.along(hosts, BYTES, through)
        self._answer()

    def _through(self, later: Sequence[tuple[int, float]], version: int, share: float) -> None:
        """Of what a stretch has carried, each worker has the last packet so much later."""
        self._leaving -= share
        for worker, lag_s in later:
            self.network.after(lag_s, partial(self._has, worker, version))
        if share:
            self._answer()

    def _has(self, worker: int, version: int) -> None:
        self._got[worker] = version
        self.compute(worker)


def rival(name: str, conditions: Conditions) -> Simulated | None:
    """By the name that its rows have; None: it is not simulated."""
    if name in ("ring gloo", "ring mpi"):
        return Ring(conditions)
    if name in ("tree", "async"):
        return {"tree": Tree, "async": Async}[name](conditions)
    if found := re.fullmatch(r"fabric (S|A-(\d+))(, whole)?", name):
        made = Fabric if found[3] else FabricByPackets
        return made(conditions, int(found[2]) if found[2] else None)
    return None
