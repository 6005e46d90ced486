"""What a rate of learning would bring that knows how late an update is, as AdaDelay's does. Nothing
is sent: workers that do not wait for each other learn digits, as in the races. docs/fabric-plan.md
has what it prints."""

from __future__ import annotations

import argparse
import heapq
import math
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from scripts.lab.benches.fabric import PARTIAL, WORKERS
from scripts.lab.workloads.digits_training import (
    Batches,
    Digits,
    accuracy,
    first_model,
    gradient,
    load,
)
from scripts.lab.workloads.stragglers import KINDS

# What an update is multiplied by: with it, the model is of this version; so many came in between.
Worth = Callable[[int, int], float]
WORTHS: dict[str, Worth] = {
    "the same": lambda version, late: 1.0,
    "AdaDelay": lambda version, late: math.sqrt(version / (version + late)),
}
RATES = {
    0.0: (0.001, 0.002, 0.003, 0.004, 0.006, 0.01),
    0.9: (0.0002, 0.0003, 0.0005, 0.001),
}
SEEDS = 5
UPDATES_MOST = 900
_LOOKED_AT_EVERY = 10
_SLOW, _SLOWER = KINDS["C1"]  # so many of the iterations take so many times as long


@dataclass(frozen=True)
class Job:
    rate: float
    momentum: float  # the server's
    worth: Worth
    seed: int
    workers: int = WORKERS


def updates_to(target: float, job: Job, digits: Digits, most: int = UPDATES_MOST) -> int:
    """How many the server has applied when so much is known; `most`: it is not."""
    random = np.random.default_rng(job.seed)
    batches = [Batches(digits, worker, seed=job.seed) for worker in range(job.workers)]
    model = first_model()
    step = np.zeros_like(model)

    def takes() -> float:
        return float(random.gamma(20, 1 / 20)) * (_SLOWER if random.random() < _SLOW else 1)

    under_way = [(takes(), worker, 0, model) for worker in range(job.workers)]
    heapq.heapify(under_way)
    for version in range(1, most):
        now, worker, seen, old = heapq.heappop(under_way)
        worth = job.worth(version, version - 1 - seen)
        step = job.momentum * step - job.rate * worth * gradient(old, *batches[worker].next())
        model = model + step
        if version % _LOOKED_AT_EVERY == 0 and accuracy(model, digits) >= target:
            return version
        heapq.heappush(under_way, (now + takes(), worker, version, model))
    return most


def _told(updates: list[int]) -> str:
    median = statistics.median(updates)
    return f"> {median:g}" if median == UPDATES_MOST else f"{median:g}"


def lines(digits: Digits) -> Iterator[str]:
    for momentum, rates in RATES.items():
        yield f"| momentum {momentum:g} | {' | '.join(f'{rate:g}' for rate in rates)} |"
        yield "|---" * (1 + len(rates)) + "|"
        for name, worth in WORTHS.items():
            cells = []
            for rate in rates:
                jobs = [Job(rate, momentum, worth, seed) for seed in range(1, SEEDS + 1)]
                cells.append(_told([updates_to(PARTIAL, job, digits) for job in jobs]))
            yield f"| {name} | {' | '.join(cells)} |"
        yield ""


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    for line in lines(load()):
        print(line, flush=True)


if __name__ == "__main__":
    main()
