"""Real work on a small model until somebody says that it is good enough.

A worker gets the model, computes an update from it, and gives that away; how, is the exchange's
part, and what is computed, the task's. Only the time is emulated: update and quality are really
computed, in some milliseconds, and what is left of an iteration's time is slept. The vector that is
exchanged has one number more than the model has: above 0, all are to stop.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from scripts.lab.workloads import digits_training
from scripts.lab.workloads.measurement import say, usage
from scripts.lab.workloads.stragglers import slowness
from scripts.lab.workloads.topics import Topics

ELEMENTS = digits_training.ELEMENTS + 1
BYTES = 4 * ELEMENTS


@dataclass(frozen=True)
class Race:
    """What all workers are told."""

    digits: str  # a file of Digits
    stop: str  # a file: once it is there, it is over
    stragglers: str  # of stragglers.KINDS
    seed: int
    compute_s: float
    rate: float  # of learning
    topics: bool = False  # of documents are found; else digits are learned


class Exchange(Protocol):
    """How a worker comes by the model, and what it does with an update."""

    rank: int
    workers: int
    together: bool  # all have the same model, and end with the same iteration

    @property
    def applied(self) -> bool:
        """Once the model is there: whether it has what was pushed last."""

    def get(self) -> Any: ...

    def push(self, update: Any) -> None: ...

    def figures(self) -> dict[str, Any]: ...

    def leave(self) -> None: ...


class Task(Protocol):
    def update(self, model: Any, applied: bool) -> Any:
        """From the model, which may have the last one."""

    def quality(self, model: Any) -> float: ...


def first_vector(race: Race) -> Any:
    if race.topics:
        return np.zeros(ELEMENTS, np.float32)
    return np.append(digits_training.first_model(), np.float32(0))


def _task(race: Race, exchange: Exchange) -> Task:
    if race.topics:
        return Topics(exchange.rank, exchange.workers)
    step = race.rate / exchange.workers if exchange.together else race.rate
    digits = digits_training.Digits.read(Path(race.digits))
    return digits_training.Learner(digits, exchange.rank, step)


def run(race: Race, exchange: Exchange) -> None:
    task = _task(race, exchange)
    update = np.zeros(ELEMENTS, np.float32)
    iteration = overran = 0
    say("started", **usage())
    say("begin", **usage())
    while True:
        vector = exchange.get()
        began = time.monotonic()
        over = os.path.exists(race.stop)
        if vector[-1] > 0 or (over and not exchange.together):
            break
        model = vector[:-1]
        update[:-1] = task.update(model, exchange.applied)
        update[-1] = 1.0 if over else 0.0
        if exchange.rank == 0 or not exchange.together:
            stands_for = exchange.workers if exchange.together else 1
            say("evaluated", t=began, quality=task.quality(model), gradients=stands_for)
        slow = slowness(race.stragglers, exchange.rank, iteration, race.seed)
        left = began + race.compute_s * slow - time.monotonic()
        overran += left < 0
        time.sleep(max(0.0, left))
        iteration += 1
        exchange.push(update)
    say("end", **usage())
    say("result", iterations=iteration, overran=overran, **exchange.figures())
    exchange.leave()
