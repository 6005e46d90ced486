"""Which checkpoints are kept: the newest that all workers have written, and whatever is newer.

Pure. A worker's disk may be slow or full: what only some have is no reason to give up what all
have.
"""

from __future__ import annotations

from collections.abc import Sequence

from pslite_ext.saving.folder import Place

MOST = 8  # if a worker writes none at all, and no more are to be kept
SPARE = 2  # of the newest, beside as many as are to be kept: one is just written


def outlived(places: Sequence[Place], by_all: Sequence[int], keep: int) -> list[Place]:
    """Older than all that are kept: nobody needs any part of them, or writes one."""
    kept = sorted(by_all)[-keep:]
    return sorted(place for place in places if len(kept) == keep and place.step < kept[0])


def superfluous(mine: Sequence[Place], by_all: Sequence[int], keep: int) -> list[Place]:
    """Of `mine`. `by_all`: the steps that all workers have written, as far as that is known."""
    kept = sorted(by_all)[-keep:]
    others = sorted((place for place in mine if place.step not in kept), reverse=True)
    return sorted({*outlived(mine, by_all, keep), *others[max(MOST, keep + SPARE) - len(kept) :]})
