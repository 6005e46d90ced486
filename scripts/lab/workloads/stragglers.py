"""Workers that take longer for some iterations, at random: the same for all who are compared."""

from __future__ import annotations

import random

# The share of iterations that take longer, and how many times as long.
KINDS = {"C0": (0.0, 1.0), "C1": (0.1, 2.0), "C2": (0.1, 4.0), "C3": (0.04, 2.0)}


def slowness(kind: str, worker: int, iteration: int, seed: int = 1) -> float:
    """How many times as long this worker computes in its n-th iteration."""
    share, times = KINDS[kind]
    return times if random.Random(f"{seed} {worker} {iteration}").random() < share else 1.0
