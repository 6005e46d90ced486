"""Many large tensors back to back; if asked for, an urgent one now and then among them."""

from __future__ import annotations

import queue
import random
import time
from collections.abc import Iterator
from typing import Any

import mxnet as mx
from engine import Engine
from exchange import Exchange
from measured import Config, say, usage

COOLDOWN = 1  # rounds after the measured ones, so that these end under full load


def flood(config: Config, exchange: Exchange, engine: Engine) -> dict[str, Any]:
    """Every tensor is pushed again when its sum is back and its neighbour has been pushed."""
    bulk = list(range(1 if config.urgent else 0, len(exchange.gradients)))
    ended: queue.SimpleQueue[tuple[int, float]] = queue.SimpleQueue()

    def start(tensor: int, turn: int) -> None:
        exchange.fill(tensor, turn)
        exchange.pushpull(tensor)
        engine.note(exchange.gradients[tensor], lambda now: ended.put((tensor, now)))

    urgent = Urgent(config, exchange)
    turns = dict.fromkeys(bulk, 0)
    idle: set[int] = set()
    following, finished = 0, 0
    first = config.warmup * len(bulk)
    last = first + config.rounds * len(bulk)
    total = last + COOLDOWN * len(bulk)
    for tensor in bulk:
        start(tensor, 0)
    while finished < total or urgent.left:
        tensor, now = urgent.wait_or_push(ended, start)
        if tensor == Urgent.TENSOR and config.urgent:
            urgent.back(now)
            continue
        exchange.check(tensor, turns[tensor])
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
    size = sum(exchange.workload.tensors[i].bytes for i in bulk)
    return {"flood_bytes": config.rounds * size, "urgent_s": urgent.latencies}


class Urgent:
    """Pushes the first tensor at random moments, the same on all workers."""

    TENSOR = 0

    def __init__(self, config: Config, exchange: Exchange) -> None:
        self.left = config.urgent
        self.latencies: list[float] = []
        self._exchange = exchange
        self._pushed: float | None = None
        self._moments = _moments(
            _common_start(exchange) if self.left else 0.0, config.urgent_every_s
        )
        self._next = next(self._moments)
        self._turn = 0

    def wait_or_push(
        self, ended: queue.SimpleQueue[tuple[int, float]], start: Any
    ) -> tuple[int, float]:
        """The next tensor that is back; urgent pushes that fall due before are done."""
        while True:
            if not self.left or self._pushed is not None:
                return ended.get()
            wait = self._next - time.monotonic()
            if wait <= 0:
                self._pushed = time.monotonic()
                start(self.TENSOR, self._turn)
                continue
            try:
                return ended.get(timeout=wait)
            except queue.Empty:
                continue

    def back(self, now: float) -> None:
        assert self._pushed is not None
        self._exchange.check(self.TENSOR, self._turn)
        self.latencies.append(now - self._pushed)
        self._pushed = None
        self._turn += 1
        self._next = next(self._moments)
        self.left -= 1


def _common_start(exchange: Exchange) -> float:
    """A moment soon to come that all workers agree on. (One machine: they share the clock.)"""
    key = len(exchange.gradients)
    moment = time.monotonic() + 0.2
    mine = [moment // 1, moment % 1] if exchange.rank == 0 else [0.0, 0.0]
    shared = mx.nd.array(mine)
    exchange.store.init(key, shared)
    exchange.store.pushpull(key, shared, out=shared)
    whole, part = shared.asnumpy()
    return float(whole) + float(part)


def _moments(start: float, every_s: float) -> Iterator[float]:
    chance, at = random.Random(1), start
    while True:
        at += chance.uniform(0.5, 1.5) * every_s
        yield at
