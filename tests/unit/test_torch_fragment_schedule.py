"""Local steps under PyTorch: whose turn it is, and which parameters are a fragment."""

from __future__ import annotations

import random
from typing import Any

import pytest

from pslite_ext.errors import InvalidArgumentError
from pslite_ext.torch.fragment_schedule import FragmentSchedule, check_alpha, cut_in_order


def turns(schedule: FragmentSchedule, steps: int) -> list[tuple[int, str, int]]:
    said = []
    for step in range(1, steps + 1):
        asked = (("sent", schedule.sent_after(step)), ("applied", schedule.applied_after(step)))
        said += [(step, what, fragment) for what, fragment in asked if fragment is not None]
    return said


def test_one_fragment_at_once() -> None:
    both = [("sent", 0), ("applied", 0)]
    expected = [(step, *what) for step in (4, 8) for what in both]
    assert turns(FragmentSchedule(4), 11) == expected


def test_fragments_take_turns_and_are_sent_before() -> None:
    assert turns(FragmentSchedule(6, 2, 1), 13) == [
        (2, "sent", 0),
        (3, "applied", 0),
        (5, "sent", 1),
        (6, "applied", 1),
        (8, "sent", 0),
        (9, "applied", 0),
        (11, "sent", 1),
        (12, "applied", 1),
    ]


def test_each_is_synchronized_once_in_every_steps_and_none_meets_another() -> None:
    rng = random.Random(5)
    for _ in range(300):
        fragments, interval = rng.randint(1, 7), rng.randint(1, 9)
        every = fragments * interval
        schedule = FragmentSchedule(every, fragments, rng.randrange(interval))
        under_way: dict[int, int] = {}
        applied: dict[int, list[int]] = {}
        for step, what, fragment in turns(schedule, 5 * every):
            if what == "sent":
                assert not under_way
                under_way[fragment] = step
            else:
                assert under_way.pop(fragment) == step - schedule.delay
                applied.setdefault(fragment, []).append(step)
        first = [(i + 1) * interval for i in range(fragments)]
        assert applied == {i: [at + every * k for k in range(5)] for i, at in enumerate(first)}


def test_with_every_step_and_no_delay_it_is_synchronous() -> None:
    schedule = FragmentSchedule(1)
    assert all(schedule.sent_after(s) == schedule.applied_after(s) == 0 for s in range(1, 9))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((0,), "every is 0; a whole number is needed, 1 or more"),
        ((True,), "every is True; a whole number"),
        ((2.0,), "every is 2.0; a whole number"),
        ((4, 0), "fragments is 0; a whole number is needed, 1 or more"),
        ((4, 2, -1), "delay is -1; a whole number is needed, 0 or more"),
        ((2, 3), "every=2 is not a multiple of the number of fragments, 3"),
        ((10, 4), "every=10 is not a multiple of the number of fragments, 4"),
        ((6, 2, 3), "delay=3 is not less than every / fragments = 3"),
    ],
)
def test_what_makes_no_schedule_is_refused(arguments: tuple[Any, ...], told: str) -> None:
    with pytest.raises(InvalidArgumentError, match=told):
        FragmentSchedule(*arguments)


@pytest.mark.parametrize("alpha", [-0.1, 1.5, "half", True, None, float("nan")])
def test_alpha_is_a_part(alpha: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="a number from 0 to 1 is needed"):
        check_alpha(alpha)
    assert [check_alpha(a) for a in (0, 0.5, 1)] == [0.0, 0.5, 1.0]


@pytest.mark.parametrize(
    ("sizes", "parts", "expected"),
    [
        ([4, 4, 4, 4], 2, [2, 2]),
        ([1, 1, 1, 9], 2, [3, 1]),
        ([9, 1, 1, 1], 2, [1, 3]),
        ([100, 1, 1], 3, [1, 1, 1]),
        ([1, 1, 100], 3, [1, 1, 1]),
        ([5, 5, 5, 5, 5], 3, [2, 2, 1]),
        ([3], 1, [1]),
        ([0, 0, 0], 2, [2, 1]),
    ],
)
def test_parts_are_about_equal(sizes: list[int], parts: int, expected: list[int]) -> None:
    assert [len(part) for part in cut_in_order(sizes, parts)] == expected


def test_parts_hold_each_parameter_once_in_order() -> None:
    rng = random.Random(6)
    for _ in range(500):
        sizes = [
            rng.choice((0, 1, 10, 1000)) * rng.randint(1, 9) for _ in range(rng.randint(1, 20))
        ]
        parts = rng.randint(1, len(sizes))
        made = cut_in_order(sizes, parts)
        assert [i for part in made for i in part] == list(range(len(sizes)))
        assert len(made) == parts
        assert all(made)
        largest = max(sum(sizes[i] for i in part) for part in made)
        assert largest <= sum(sizes) / parts + max(sizes)


def test_too_few_parameters() -> None:
    with pytest.raises(InvalidArgumentError, match="fragments=3, but the optimizer has 2 param"):
        cut_in_order([1, 1], 3)
