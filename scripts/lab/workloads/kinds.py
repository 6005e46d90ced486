"""Kinds of values besides whole float32 sums: what each must send, and get back, at least."""

from __future__ import annotations

from typing import NamedTuple

from scripts.lab.workloads.workload import Tensor

WHOLE, ROWS, ASYNC = "whole", "rows", "async"
CODED_BITS = {"2bit": 2, "1bit": 1}  # of an element that is pushed; sums are float32
ROW_ELEMENTS = 256
ROW_NUMBER_BYTES = 8
# Of so many rows of a table, a worker pushes two: one that all push, and one of its own.
PERIOD = 8


class Ways(NamedTuple):
    """A worker's bytes in a round."""

    pushed: int
    pulled: int


def rows_pushed(tensor: Tensor, turn: int, rank: int) -> list[int]:
    rows = range(tensor.elements // ROW_ELEMENTS)
    return [row for row in rows if (row + turn) % PERIOD in (0, 1 + rank)]


def ways(kind: str, tensor: Tensor, workers: int) -> Ways:
    if kind in CODED_BITS:
        return Ways(-(-tensor.elements * CODED_BITS[kind] // 8), tensor.bytes)
    if kind != ROWS:
        return Ways(tensor.bytes, tensor.bytes)
    pushed = [rows_pushed(tensor, 0, rank) for rank in range(workers)]
    row_bytes = ROW_NUMBER_BYTES + ROW_ELEMENTS * tensor.bytes // tensor.elements
    return Ways(max(map(len, pushed)) * row_bytes, len(set().union(*pushed)) * row_bytes)
