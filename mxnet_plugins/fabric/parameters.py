"""A model's parameters as one array, which key has which of its elements; and what a step is.

Thread-safety: none. No MXNet. Invariants: keys lie one behind the other, in the order in which they
came; a step has each key once at most.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from mxnet_plugins.keys import Key


class Parameters:
    def __init__(self) -> None:
        self._places: dict[Key, tuple[slice, tuple[int, ...]]] = {}
        self._size = 0

    def __contains__(self, key: Key) -> bool:
        return key in self._places

    def keys(self) -> Iterable[Key]:
        return self._places.keys()

    def add(self, key: Key, shape: tuple[int, ...]) -> None:
        count = int(np.prod(shape, dtype=np.int64))
        self._places[key] = (slice(self._size, self._size + count), shape)
        self._size += count

    def shape(self, key: Key) -> tuple[int, ...]:
        return self._places[key][1]

    def shapes(self) -> Iterable[tuple[Key, tuple[int, ...]]]:
        return ((key, shape) for key, (_, shape) in self._places.items())

    def part(self, whole: Any, key: Key) -> Any:
        """A view of that key's elements, in its shape."""
        where, shape = self._places[key]
        return whole[where].reshape(shape)


class StepKeys:
    """Which keys have been pushed in this step, and whether these are all."""

    def __init__(self, expected: Iterable[Key]) -> None:
        self._expected = set(expected)
        self._pushed: set[Key] = set()

    def is_new(self, key: Key) -> bool:
        """Whether steps have been without it."""
        return key not in self._expected

    def missing(self) -> set[Key]:
        """What this step is still without."""
        return self._expected - self._pushed

    def has(self, key: Key) -> bool:
        return key in self._pushed

    def begins_with(self, key: Key) -> bool:
        """Whether a push of this key is of the next step: then this one is over, and was all."""
        if not self.has(key):
            return False
        self._expected = set(self._pushed)
        return True

    def pushed(self, key: Key) -> bool:
        """Whether all are there now."""
        self._pushed.add(key)
        return self._expected <= self._pushed

    def over(self) -> None:
        self._pushed.clear()
