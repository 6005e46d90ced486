"""MLfabric's races if a batch were planned while others are under way, foretold
(fabric_prediction.py). The live system carries out one at a time: docs/fabric-plan.md says why.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pslite_ext import _core
from scripts.lab.benches.fabric_prediction import LETTER_S, FabricByPackets
from scripts.lab.benches.race_prediction import Conditions


@dataclass(frozen=True)
class UnderWay:
    """A chain, and what it has reserved. `order`: its plan's chains that are not applied yet."""

    order: list[int]
    updates: Sequence[int]
    hosts: Sequence[int]
    bits_per_s: float
    end_s: float


class Overlapping(FabricByPackets):
    """A plan knows what earlier ones have reserved, and none makes an update under way too old. In
    step, a round's version is made when all of it is there. `least`: so many wait for a plan, while
    anything is under way."""

    def __init__(self, conditions: Conditions, bound: int | None, least: int = 1) -> None:
        super().__init__(conditions, bound)
        self._least = least
        self._chains: dict[int, UnderWay] = {}  # by their first worker, who has one update
        self.oldest = 0  # of all that were applied
        self._round: list[int] = []  # in step: what has arrived

    def _under_way(self) -> list[int]:
        return [update for chain in self._chains.values() for update in chain.updates]

    def _plan_if_time(self) -> None:
        under_way = self._under_way()
        if len(self._waiting) < (self._least if under_way else 1):
            return
        most = len(self._waiting)
        if self._bound is not None and under_way:
            # Each may be applied after all others that are under way, and after the new ones.
            latest = self._version + len(under_way) - 1
            most = min(self._bound - (latest - self._got[update]) for update in under_way)
        if most > 0:
            batch, self._waiting = self._waiting[:most], self._waiting[most:]
            self._plan_batch(batch)

    def batch(self, workers: Sequence[int], passing: Sequence[int]) -> dict[str, Any]:
        made = super().batch(workers, passing)
        made["version"] += len(self._under_way()) if self._bound is not None else 0
        for chain in self._chains.values():
            left_s = chain.end_s - self.network.now
            for source, target in zip(chain.hosts, chain.hosts[1:]):
                _reserve(made["hosts"][f"h{source}"]["out"], chain.bits_per_s, left_s)
                _reserve(made["hosts"][f"h{target}"]["in"], chain.bits_per_s, left_s)
        return made

    def _plan_batch(self, batch: Sequence[int]) -> None:
        plan = json.loads(_core.fabric_plan(json.dumps(self.batch(batch, batch[:1])).encode()))
        order: list[int] = []
        for drop in plan["dropped"]:
            self._settle(int(drop["id"]), letters=1)
        for hop in plan["transfers"]:
            if hop["to"] != "server":
                continue
            updates = [int(update) for update in hop["updates"]]
            hosts = self._way(updates)
            starts_s, end_s = hop["pieces"][0][0], hop["pieces"][-1][1]
            rate = 8 * hop["bytes"] / (end_s - starts_s)
            now = self.network.now
            order.append(updates[0])
            self._chains[updates[0]] = UnderWay(order, updates, hosts, rate, now + end_s)
            flow = partial(self._flow, hop, updates, hosts)
            self.network.after(LETTER_S, partial(self.network.at, now + starts_s, flow))

    def _at_server(self, updates: Sequence[int]) -> None:
        order = self._chains[updates[0]].order
        self._arrived.add(updates[0])
        while order and order[0] in self._arrived:
            first = order.pop(0)
            self._arrived.remove(first)
            self._apply(self._chains.pop(first).updates)
        self.network.after(LETTER_S, self._plan_if_time)

    def _apply(self, updates: Sequence[int]) -> None:
        if self._bound is None:
            self._round += updates
            if len(self._round) < self.conditions.workers:
                return
            updates, self._round = self._round, []
            self._version += 1
        for update in updates:
            self.oldest = max(self.oldest, self._version - self._got[update])
            self._version += self._bound is not None
            self._settle(update, letters=2)


def _reserve(rates: list[list[float]], bits_per_s: float, left_s: float) -> None:
    """Of the rate so far, for so long; `rates`: [since, bit/s], in order."""
    if left_s <= 0:
        return
    then = [rate for since, rate in rates if since <= left_s][-1]
    later = [[since, rate] for since, rate in rates if since > left_s]
    before = [[since, max(rate - bits_per_s, 1.0)] for since, rate in rates if since < left_s]
    rates[:] = [*before, [left_s, then], *later]
