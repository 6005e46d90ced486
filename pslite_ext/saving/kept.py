"""Which checkpoints are kept: the newest that all workers have written, and whatever is newer.

Pure. A worker's disk may be slow or full: what only some have is no reason to give up what all
have.
"""

from __future__ import annotations

from collections.abc import Sequence

from pslite_ext.saving.folder import Place

MOST = 8  # if a worker writes none at all, and no more are to be kept
SPARE = 2  # of the newest, beside as many as are to be kept: one is just written


def superfluous(mine: Sequence[Place], by_all: Sequence[int], keep: int) -> list[Place]:
    """Of `mine`. `by_all`: the steps that all workers have written, as far as that is known."""
    kept = sorted(by_all)[-keep:]
    old = {place for place in mine if len(kept) == keep and place.step < kept[0]}
    others = sorted((place for place in mine if place.step not in kept), reverse=True)
    return sorted({*old, *others[max(MOST, keep + SPARE) - len(kept) :]})
