"""Least, greatest and sum of values that belong together, without a loop over them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tracer.format.record import Array, Ints


@dataclass
class Groups:
    """Rows with equal keys. Groups come in ascending order of their keys."""

    keys: list[Ints]  # of each group
    index: Ints  # the group of each row
    order: Ints  # rows, group by group
    begin: Ints  # where in `order` each group begins

    def __len__(self) -> int:
        return len(self.begin)

    def named(self, *names: str, rows: Array | None = None) -> dict[str, Ints]:
        """The keys as columns, of all groups or of some."""
        keys = self.keys if rows is None else [key[rows] for key in self.keys]
        return dict(zip(names, keys))

    def least(self, values: Array) -> Array:
        return self._reduce(np.minimum, values)

    def most(self, values: Array) -> Array:
        return self._reduce(np.maximum, values)

    def total(self, values: Array) -> Array:
        return self._reduce(np.add, values)

    def count(self) -> Ints:
        return np.diff(self.begin, append=len(self.order))

    def row_of_most(self, values: Array) -> Ints:
        """The row in which each group has its greatest value."""
        return self.sorted_rows(values)[self.last]

    def lead(self, values: Array) -> tuple[Ints, Array]:
        """The same rows, and by how much each is above the next greatest; -1: it is alone."""
        order = self.sorted_rows(values)
        first, next_one = order[self.last], order[np.maximum(self.last - 1, 0)]
        return first, np.where(self.count() > 1, values[first] - values[next_one], -1)

    def median(self, values: Array) -> Array:
        ordered, count = values[self.sorted_rows(values)], self.count()
        middle: Array = (
            ordered[self.begin + (count - 1) // 2] + ordered[self.begin + count // 2]
        ) / 2
        return middle

    def sorted_rows(self, values: Array) -> Ints:
        """Rows, group by group, each group in ascending order of `values`."""
        rows: Ints = np.lexsort((values, self.index))
        return rows

    @property
    def last(self) -> Ints:
        """Where in `order` each group ends; in `sorted_rows`, where its greatest is."""
        return np.append(self.begin[1:], len(self.order))[: len(self.begin)] - 1

    def _reduce(self, how: np.ufunc, values: Array) -> Array:
        if not len(self.begin):
            return values[:0]
        reduced: Array = how.reduceat(values[self.order], self.begin)
        return reduced


def group(*keys: Array) -> Groups:
    """Groups of rows with the same combination of keys."""
    size = len(keys[0])
    order = np.lexsort(tuple(reversed(keys)))
    differs = np.zeros(size, np.bool_)
    differs[:1] = True
    for key in keys:
        along = key[order]
        differs[1:] |= along[1:] != along[:-1]
    begin = np.flatnonzero(differs)
    index = np.empty(size, np.int64)
    index[order] = np.cumsum(differs) - 1
    return Groups([key[order][begin].astype(np.int64) for key in keys], index, order, begin)
