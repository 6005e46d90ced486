"""All workers go on from one step, and as many of them as can with what is their own."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from pslite_ext.saving.choice import Found, Resumption, choose, missed
from pslite_ext.saving.folder import Place

PLACES = st.frozensets(st.builds(Place, st.integers(1, 9), st.just(2), st.just(7)), max_size=4)


def at(step: int, run: int = 7, workers: int = 2) -> Place:
    return Place(step, workers, run)


def found(own: Iterable[Place | int], shared: Iterable[Place | int] = ()) -> Found:
    return Found(
        frozenset(p if isinstance(p, Place) else at(p) for p in own),
        frozenset(p if isinstance(p, Place) else at(p) for p in shared),
    )


def test_the_newest_that_all_have() -> None:
    assert choose([found([5, 10], [5, 10]), found([5, 10], [5, 10])]) == Resumption(at(10), (), ())
    # One was still writing when the job died.
    assert choose([found([5, 10], [5, 10]), found([5], [5, 10])]) == Resumption(at(5), (), ())
    # A folder on each host.
    each = [found([5, 10], [5, 10]), found([5, 10]), found([10])]
    assert choose(each) == Resumption(at(10), (1, 2), ())


def test_parts_of_two_runs_do_not_go_together() -> None:
    """Both came to step 10; the second died while worker 1 was writing it."""
    first = [found([5, at(10, 8)], [5, at(10, 8)]), found([5, at(10, 7)], [5, at(10, 8)])]
    assert choose(first) == Resumption(at(5), (), ())


def test_a_worker_that_is_new_costs_no_step() -> None:
    assert choose([found([5, 10], [5, 10]), found([])]) == Resumption(at(10), (1,), (1,))
    assert choose([found([], [5, 10]), found([5, 10])]) == Resumption(at(10), (1,), (0,))
    assert choose([found([])]) is None


def test_what_more_or_fewer_workers_have_written_since_counts() -> None:
    """Two wrote steps 5 and 10, one alone went on to 20, and now there are two again."""
    both, alone = [at(5), at(10)], [at(15, 8, 1), at(20, 8, 1)]
    now = [found([*both, *alone], [*both, *alone]), found(both, [*both, *alone])]
    assert choose(now) == Resumption(at(20, 8, 1), (), (1,))


def test_a_folder_that_worker_0_has_lost_is_not_a_beginning() -> None:
    assert missed([found([]), found([5, 10])]) is None  # it died while it wrote its first
    assert missed([found([]), found([]), found([5, 10, 15])]) == 2
    assert missed([found([5], [5]), found([5, 10, 15])]) is None
    assert missed([found([]), found([])]) is None
    # What another wrote long ago, when worker 0 was lost for a while, is none either.
    assert missed([found([]), found([5, 10, 15, 20], [5])]) == 1
    assert missed([found([]), found([5, 10, 15, 20], [20])]) is None


def test_without_those_who_were_lost() -> None:
    """Worker 2 was lost after step 10, and the others went on to 20; then worker 0 was."""
    without_2, without_0 = at(20, workers=2), at(30, workers=1)
    three = [at(10, workers=3)]
    shared = [*three, without_2]
    now = [found([*three, without_2], shared), found([*three, without_2], shared), found(three)]
    assert choose(now) == Resumption(without_2, (2,), (2,))
    shared = [*shared, without_0]
    now = [
        found([*three, without_2], shared),
        found([*three, without_2, without_0], shared),
        found(three, shared),
    ]
    assert choose(now) == Resumption(without_0, (), (0, 2))
    # What worker 1 was still writing when the job died is not whole.
    now[1] = found([*three, without_2], shared)
    assert choose(now) == Resumption(without_0, (), (0, 1, 2))


def test_without_worker_0_by_as_many_as_there_are_now() -> None:
    """Four trained until worker 0 was lost; the three that were left wrote on, and now there are
    three, of which worker 0 wrote none of these."""
    four, three = [at(10, workers=4)], [at(20, workers=3), at(30, workers=3)]
    shared = [*four, *three]
    others = found([*four, *three], shared)
    assert choose([found(four, shared), others, others]) == Resumption(three[1], (), (0,))
    # Worker 2 was still writing when the job died.
    late = found([*four, three[0]], shared)
    assert choose([found(four, shared), others, late]) == Resumption(three[0], (), (0,))
    # Its disk is a new one.
    assert choose([found([], shared), others, others]) == Resumption(three[1], (), (0,))
    assert missed([found([], shared), others, others]) is None
    # There had been three before the fourth came.
    before = at(5, workers=3)
    shared = [before, *shared]
    others = found([before, *four, *three], shared)
    assert choose([found([before, *four], shared), others, others]) == Resumption(
        three[1], (), (0,)
    )


def test_what_another_wrote_on_its_own_host_without_worker_0() -> None:
    """Worker 0 was lost after step 10."""
    alone = [at(15, workers=1), at(20, workers=1)]
    chosen = choose([found([5, 10], [5, 10]), found([5, 10, *alone], alone)])
    assert chosen == Resumption(alone[1], (0,), (0,))
    assert chosen.giver == 1
    both = choose([found([5, 10], [5, 10]), found([5, 10])])
    assert both == Resumption(at(10), (1,), ())
    assert both.giver == 0


def test_what_worker_0_has_damaged_is_none_although_others_see_the_rest() -> None:
    first = found([5], [5, 10])._replace(damaged=frozenset([at(10)]))
    assert choose([first, found([5, 10], [5, 10])]) == Resumption(at(5), (), ())
    assert choose([first, found([])]) == Resumption(at(5), (1,), (1,))


@given(st.lists(st.builds(Found, PLACES, PLACES), min_size=1, max_size=5))
def test_whatever_is_found(all_found: list[Found]) -> None:
    chosen = choose(all_found)
    shared = frozenset[Place]().union(*(each.shared for each in all_found))
    assert (chosen is None) == (not shared)
    if chosen is None:
        return
    assert chosen.place in all_found[chosen.giver].shared
    better = {
        place
        for place in shared
        if sum(place in each.own for each in all_found)
        >= min(place.workers, len(all_found) - (place not in all_found[0].own))
    }
    assert not better or chosen.place == max(better)
