"""From which checkpoint a job goes on. Pure: all workers choose by the same table, and so alike."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from pslite_ext.saving.folder import Place

# Parts of so many steps that others may have before worker 0 has one: one is being written, the
# next waits for it.
AHEAD = 2


class Found(NamedTuple):
    """By one worker: where it sees its own part, and where the shared one, both whole."""

    own: frozenset[Place]
    shared: frozenset[Place]
    damaged: frozenset[Place] = frozenset()  # its own part is there, and not whole


class Resumption(NamedTuple):
    place: Place
    lacking: tuple[int, ...]  # workers without the shared part, who get it from another
    strangers: tuple[int, ...]  # workers without a part of their own

    @property
    def giver(self) -> int:
        """Who gives it to them: the first that has it."""
        return next(rank for rank in itertools.count() if rank not in self.lacking)


def choose(found: Sequence[Found]) -> Resumption | None:
    """Of those that as many workers wrote as the newest: the newest of which all who wrote it have
    their own parts; else the newest, and those who were not there begin from it. None: there is
    nothing to go on from.

    Those that worker 0 has no part of its own of count as well: they were written without it.
    """
    shared = _shared(found)
    if not shared:
        return None
    newest = max(shared)
    alike = {place for place in shared if place.workers == newest.workers}
    whole = {place for place in alike if _is_whole(place, found)}
    place = max(whole) if whole else newest
    return Resumption(
        place,
        tuple(rank for rank, each in enumerate(found) if place not in each.shared),
        tuple(rank for rank, each in enumerate(found) if place not in each.own),
    )


def _shared(found: Sequence[Found]) -> frozenset[Place]:
    """Where a worker sees the shared part, whoever wrote it. If worker 0's own part is damaged, it
    was there, and does not begin without it."""
    return frozenset().union(*(each.shared for each in found)) - found[0].damaged


def _is_whole(place: Place, found: Sequence[Found]) -> bool:
    have = sum(place in each.own for each in found)
    # Worker 0 writes its own part before the shared one, so where it has none it was lost before.
    could = len(found) - (place not in found[0].own)
    return have >= min(place.workers, could)


def missed(found: Sequence[Found]) -> int | None:
    """A worker that has so much that worker 0 cannot have nothing: its folder is another one."""
    if found[0].shared - found[0].damaged:
        return None
    newest = max(_shared(found), default=None)  # that others wrote without it
    for rank, each in enumerate(found):
        if sum(newest is None or place > newest for place in each.own) > AHEAD:
            return rank
    return None
