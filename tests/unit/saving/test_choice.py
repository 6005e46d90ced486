"""All workers go on from one step, and as many of them as can with what is their own."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from pslite_ext.saving.choice import Found, Resumption, choose

STEPS = st.frozensets(st.integers(1, 9), max_size=4)


def found(own: Iterable[int], shared: Iterable[int] = ()) -> Found:
    return Found(frozenset(own), frozenset(shared))


def test_the_newest_that_all_have() -> None:
    assert choose([found([5, 10], [5, 10]), found([5, 10], [5, 10])]) == Resumption(10, (), ())
    # One was still writing when the job died.
    assert choose([found([5, 10], [5, 10]), found([5], [5, 10])]) == Resumption(5, (), ())
    # A folder on each host.
    assert choose([found([5, 10], [5, 10]), found([5, 10]), found([10])]) == Resumption(
        10, (1, 2), ()
    )


def test_a_worker_that_is_new_costs_no_step() -> None:
    assert choose([found([5, 10], [5, 10]), found([])]) == Resumption(10, (1,), (1,))
    assert choose([found([], [5, 10]), found([5, 10])]) is None
    assert choose([found([])]) is None


@given(st.lists(st.builds(Found, STEPS, STEPS), min_size=1, max_size=5))
def test_whatever_is_found(all_found: list[Found]) -> None:
    chosen = choose(all_found)
    first = all_found[0].own & all_found[0].shared
    assert (chosen is None) == (not first)
    if chosen is None:
        return
    assert chosen.step in first
    assert 0 not in (*chosen.lacking, *chosen.strangers)
    better = {step for step in first if all(step in each.own for each in all_found)}
    assert not better or (chosen.strangers == () and chosen.step == max(better))
