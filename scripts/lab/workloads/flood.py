"""Many large tensors back to back; if asked for, an urgent one now and then among them."""

from __future__ import annotations

import queue
import random
import time
from collections.abc import Callable, Iterator
from typing import Any

import mxnet as mx

from scripts.lab.workloads.engine import Engine
from scripts.lab.workloads.gradients import Gradients
from scripts.lab.workloads.job_config import Config
from scripts.lab.workloads.measurement import say, usage

COOLDOWN = 1  # rounds after the measured ones, so that these end under full load


def flood(config: Config, gradients: Gradients, engine: Engine) -> dict[str, Any]:
    """Every tensor is pushed again when its sum is back and its neighbour has been pushed."""
    bulk = list(range(1 if config.urgent else 0, len(gradients.arrays)))
    ended: queue.SimpleQueue[tuple[int, float]] = queue.SimpleQueue()

    def start(tensor: int, turn: int) -> None:
        gradients.fill(tensor, turn)
        gradients.pushpull(tensor)
        engine.note(gradients.arrays[tensor], lambda now: ended.put((tensor, now)))

    urgent = Urgent(config, gradients)
    turns = dict.fromkeys(bulk, 0)
    idle: set[int] = set()
    following, finished = 0, 0
    first = config.warmup * len(bulk)
    last = first + config.rounds * len(bulk)
    total = last + COOLDOWN * len(bulk)
    for tensor in bulk:
        start(tensor, 0)
    while finished < total or urgent.active:
        if urgent.due() and ended.empty():  # what is back goes out again first
            # The last urgent one must find the link as full as the first.
            urgent.push(start, more=finished < last - 2 * len(bulk))
        try:
            tensor, now = ended.get(timeout=urgent.wait_s())
        except queue.Empty:
            continue
        if tensor not in turns:
            urgent.back(now)
            continue
        gradients.check(tensor, turns[tensor])
        turns[tensor] += 1
        idle.add(tensor)
        finished += 1
        if finished == first:
            say("begin", **usage())
        elif finished == last:
            say("end", **usage())
        while bulk[following] in idle and turns[bulk[following]] * len(bulk) < total:
            idle.remove(bulk[following])
            start(bulk[following], turns[bulk[following]])
            following = (following + 1) % len(bulk)
    size = sum(gradients.workload.tensors[i].bytes for i in bulk)
    return {"flood_bytes": config.rounds * size, "urgent_s": urgent.latencies}


class Urgent:
    """Pushes the first tensor at random moments, the same on all workers.

    One element of it says whether its worker wants to go on; so all see in the sum whether all
    do, and stop after the same push. A moment at which the last one is not yet back is left out.
    """

    TENSOR = 0
    MORE = 1  # the element; none of the samples

    def __init__(self, config: Config, gradients: Gradients) -> None:
        self.active = config.urgent > 0
        self.latencies: list[float] = []
        self._most = config.urgent
        self._gradients = gradients
        self._pushed: float | None = None
        if self.active:
            self._moments = _moments(_common_start(gradients), config.urgent_every_s)
            self._next = next(self._moments)

    def due(self) -> bool:
        return self.active and self._pushed is None and time.monotonic() >= self._next

    def wait_s(self) -> float | None:
        """How long nothing needs to be done about it."""
        if not self.active or self._pushed is not None:
            return None
        return max(0.0, self._next - time.monotonic())

    def push(self, start: Callable[[int, int], None], more: bool) -> None:
        turn = len(self.latencies)
        more = more and turn + 1 < self._most
        self._gradients.memory[self.TENSOR][self.MORE] = 1.0 if more else 0.0
        self._pushed = time.monotonic()
        start(self.TENSOR, turn)

    def back(self, now: float) -> None:
        assert self._pushed is not None
        self._gradients.check(self.TENSOR, len(self.latencies))
        self.latencies.append(now - self._pushed)
        self._pushed = None
        flag = self._gradients.memory[self.TENSOR]
        self.active = flag[self.MORE] == self._gradients.workers
        flag[self.MORE] = 0.0
        now = time.monotonic()
        while self._next <= now:
            self._next = next(self._moments)


def _common_start(gradients: Gradients) -> float:
    """A moment soon to come that all workers agree on. (One machine: they share the clock.)"""
    key = len(gradients.arrays)
    moment = time.monotonic() + 0.2
    mine = [moment // 1, moment % 1] if gradients.rank == 0 else [0.0, 0.0]
    shared = mx.nd.array(mine)
    gradients.store.init(key, shared)
    gradients.store.pushpull(key, shared, out=shared)
    whole, part = shared.asnumpy()
    return float(whole) + float(part)


def _moments(start: float, every_s: float) -> Iterator[float]:
    chance, at = random.Random(1), start
    while True:
        at += chance.uniform(0.5, 1.5) * every_s
        yield at
