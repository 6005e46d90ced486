"""Slow iterations come as often as they should, and the same for everybody."""

from __future__ import annotations

from collections import Counter

import pytest

from scripts.lab.workloads.stragglers import KINDS, slowness


@pytest.mark.parametrize("kind", KINDS)
def test_iterations_are_slow_as_often_as_they_should_be(kind: str) -> None:
    share, times = KINDS[kind]
    seen = Counter(slowness(kind, w, i) for w in range(30) for i in range(200))
    assert set(seen) == ({1.0, times} if share else {1.0})
    assert (seen[times] if share else 0) / 6000 == pytest.approx(share, abs=0.015)


def test_they_depend_on_worker_iteration_and_seed_alone() -> None:
    runs = [[slowness("C2", 3, i, seed) for i in range(200)] for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]
    assert runs[0] != [slowness("C2", 4, i) for i in range(200)]
