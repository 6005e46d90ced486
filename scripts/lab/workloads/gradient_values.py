"""What gradients hold: zeros but for three values, which differ by worker, tensor and round.

So every sum of every round is checked, and no time goes into filling arrays.
"""

from __future__ import annotations


def positions(elements: int) -> list[int]:
    return sorted({0, elements // 3, elements - 1})


# Of sums that travel as less than float32: each worker's value is rounded once, and the sum.
ROUNDED = 2e-2


def _value(tensor: int, turn: int, sample: int) -> float:
    return float((7 * turn + 3 * tensor + 5 * sample) % 997 + 1)


def pushed(tensor: int, turn: int, sample: int, rank: int) -> float:
    return _value(tensor, turn, sample) * (rank + 1)


def due(tensor: int, turn: int, sample: int, workers: int) -> float:
    """The sum over all workers; whole numbers, so exact."""
    return _value(tensor, turn, sample) * workers * (workers + 1) / 2
