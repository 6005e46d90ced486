"""From which checkpoint a job goes on. Pure: all workers choose by the same table, and so alike."""

from __future__ import annotations

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


class Resumption(NamedTuple):
    place: Place
    lacking: tuple[int, ...]  # workers without the shared part, who get it from worker 0
    strangers: tuple[int, ...]  # workers without a part of their own


def choose(found: Sequence[Found]) -> Resumption | None:
    """Of those that as many workers wrote as worker 0's newest: the newest of which all who wrote
    it have their own parts; else worker 0's newest, and those who were not there begin from its.
    None: there is nothing to go on from.

    Those that worker 0 has no part of its own of count as well: they were written without it.
    """
    if not found[0].shared:
        return None
    newest = max(found[0].shared)
    alike = {place for place in found[0].shared if place.workers == newest.workers}
    whole = {place for place in alike if _is_whole(place, found)}
    place = max(whole) if whole else newest
    return Resumption(
        place,
        tuple(rank for rank, each in enumerate(found) if place not in each.shared),
        tuple(rank for rank, each in enumerate(found) if place not in each.own),
    )


def _is_whole(place: Place, found: Sequence[Found]) -> bool:
    have = sum(place in each.own for each in found)
    # Worker 0 writes its own part before the shared one, so where it has none it was lost before.
    could = len(found) - (place not in found[0].own)
    return have >= min(place.workers, could)


def missed(found: Sequence[Found]) -> int | None:
    """A worker that has so much that worker 0 cannot have nothing: its folder is another one."""
    for rank, each in enumerate(found):
        if len(each.own) > AHEAD and not found[0].shared:
            return rank
    return None
