"""From which checkpoint a job goes on. Pure: all workers choose by the same table, and so alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Found(NamedTuple):
    """By one worker: the steps of which it sees its own part, and the shared one, both whole."""

    own: frozenset[int]
    shared: frozenset[int]


class Resumption(NamedTuple):
    step: int
    lacking: tuple[int, ...]  # workers without the shared part, who get it from worker 0
    strangers: tuple[int, ...]  # workers without a part of their own


def choose(found: Sequence[Found]) -> Resumption | None:
    """The newest step of which every worker has its own part; else the newest that worker 0 has,
    and those who were not there begin from its. None: there is nothing to go on from.
    """
    first = found[0].own & found[0].shared
    if not first:
        return None
    whole = first.intersection(*(each.own for each in found))
    step = max(whole or first)
    return Resumption(
        step,
        tuple(rank for rank, each in enumerate(found) if step not in each.shared),
        tuple(rank for rank, each in enumerate(found) if step not in each.own),
    )
