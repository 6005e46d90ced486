"""What all workers have is never given up for what only some have."""

from __future__ import annotations

import random

import pytest

from pslite_ext.saving.folder import Place
from pslite_ext.saving.kept import MOST, SPARE, superfluous


def places(*steps: int) -> list[Place]:
    return [Place(step, 2, 7) for step in sorted(steps, reverse=True)]


def test_the_newest_that_all_have_are_kept_and_whatever_is_newer() -> None:
    mine = places(5, 10, 15, 20, 25)
    assert superfluous(mine, [10, 15, 20], 2) == places(10, 5)[::-1]
    assert superfluous(mine, [5, 20], 2) == []
    assert superfluous(mine, [20], 2) == []  # as far as is known
    kept = {*places(*range(20))} - {*superfluous(places(*range(20)), [1, 3], 2)}
    assert kept == {*places(1, 3, *range(14, 20))}


@pytest.mark.parametrize("keep", range(2, 21))
def test_however_many_are_kept_what_was_just_written_stays(keep: int) -> None:
    mine: set[int] = set()
    by_all: list[int] = []
    for step in range(100, 5000, 100):
        mine.add(step)
        mine -= {place.step for place in superfluous(places(*mine), by_all, keep)}
        assert mine == {step, *by_all[-keep:]}
        by_all.append(step)
    # When the job goes on, it knows of one that all have.
    assert superfluous(places(*mine), [step], keep) == []
    # Others write none any more.
    more = {*mine, *range(10_000, 20_000, 100)}
    left = more - {place.step for place in superfluous(places(*more), by_all, keep)}
    assert left >= {*by_all[-keep:], 19_900, 19_800}
    assert len(left) == max(MOST, keep + SPARE)


@pytest.mark.parametrize("seed", range(200))
def test_whenever_the_job_dies_there_is_one_that_all_have(seed: int) -> None:
    """Each writes when it can, and some writes fail."""
    draw = random.Random(seed)
    workers, keep = draw.randrange(1, 5), draw.randrange(2, 4)
    fails = [draw.choice((0.0, 0.0, 0.3)) for _ in range(workers)]
    have: list[set[int]] = [set() for _ in range(workers)]
    by_all: list[int] = []
    for step in range(1, 60):
        done = []
        for rank in draw.sample(range(workers), workers):
            done.append(draw.random() >= fails[rank])
            if done[-1]:
                have[rank].add(step)
                for place in superfluous(places(*have[rank]), by_all, keep):
                    have[rank].discard(place.step)
            for known in by_all[-keep:]:
                assert all(known in mine for mine in have)
        by_all += [step] if all(done) else []
        assert all(len(mine) <= MOST for mine in have)
        if not any(fails):
            assert all(len(mine) <= keep + 1 for mine in have)
