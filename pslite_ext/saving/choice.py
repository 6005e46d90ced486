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

    Worker 0 has its own part of each, but of those that fewer workers wrote than there are now: it
    may have been lost.
    """
    first = _of_worker_0(found)
    if not first:
        return None
    newest = max(first)
    alike = {place for place in first if place.workers == newest.workers}
    whole = {place for place in alike if _is_whole(place, found)}
    place = max(whole) if whole else newest
    return Resumption(
        place,
        tuple(rank for rank, each in enumerate(found) if place not in each.shared),
        tuple(rank for rank, each in enumerate(found) if place not in each.own),
    )


def _of_worker_0(found: Sequence[Found]) -> set[Place]:
    fewer = {place for place in found[0].shared if place.workers < len(found)}
    return {*(found[0].own & found[0].shared), *fewer}


def _is_whole(place: Place, found: Sequence[Found]) -> bool:
    have = sum(place in each.own for each in found)
    return have >= min(place.workers, len(found))


def missed(found: Sequence[Found]) -> int | None:
    """A worker that has so much that worker 0 cannot have nothing: its folder is another one."""
    for rank, each in enumerate(found):
        if len(each.own) > AHEAD and not _of_worker_0(found):
            return rank
    return None
