"""In which step of its worker a push was, where a job pushes some keys less often than others.

Operation numbers count the pushes of each key by itself. That is the step as long as every step
pushes every key; of a job with several Trainers, such as a GAN, it is not. There a step begins when
a key of the current one is pushed again. All workers run the same script, so one of them tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
KEY_BIT = 32  # above a key's own number


class Push(NamedTuple):
    key: int
    number: int  # of this key's pushes, from 0
    pushed: int
    answered: int


def _place(key: Ints, number: Ints) -> Ints:
    found: Ints = key.astype(np.int64) << KEY_BIT | number
    return found


def _nothing() -> Ints:
    return np.zeros(0, np.int64)


@dataclass(frozen=True)
class StepNumbers:
    """By how much a push's step is ahead of the push's own number; nothing: never."""

    place: Ints = field(default_factory=_nothing)  # key and number, ascending
    ahead: Ints = field(default_factory=_nothing)

    def step(self, key: Ints, number: Ints) -> Ints:
        """A number of which nothing is known is as far behind as the key's last one before it."""
        if not len(self.place):
            return number
        at = np.searchsorted(self.place, _place(key, number), "right") - 1
        known = (at >= 0) & (self.place[at] >> KEY_BIT == key)
        found: Ints = number + np.where(known, self.ahead[at], 0)
        return found


def of_pushes(key: Ints, number: Ints, pushed: Ints, answered: Ints) -> StepNumbers:
    """By the pushes of one worker, in any order."""
    rows = np.lexsort((number, pushed))
    rows = rows[_in_turn(key[rows], number[rows])]
    key, number = key[rows], number[rows]
    _, last = np.unique(key[::-1], return_index=True)
    last = len(key) - 1 - last
    # Where all steps push all keys, no key's last push comes behind a later number of another's.
    if not (np.maximum.accumulate(number)[last] > number[last]).any():
        return StepNumbers()
    columns = (column.tolist() for column in (key, number, pushed[rows], answered[rows]))
    steps = dict(_steps(map(Push, *columns)))
    place = _place(*np.array([[push.key, push.number] for push in steps], np.int64).T)
    ahead = np.array([step - push.number for push, step in steps.items()], np.int64)
    order = np.argsort(place)
    return StepNumbers(place[order], ahead[order])


def _in_turn(key: Ints, number: Ints) -> Ints:
    """Those after which their key counts on: not a damaged number among the others."""
    order = np.argsort(key, kind="stable")
    place = _place(key[order], number[order])
    least_later = np.minimum.accumulate(place[::-1])[::-1]
    return np.sort(order[place == least_later])


def _steps(pushes: Iterable[Push]) -> Iterator[tuple[Push, int]]:
    """Numbers that are not there count, too: records may be lost, and a trace may begin later."""
    ahead: dict[int, int] = {}
    current: list[Push] = []
    step = -1
    for push in pushes:
        own = push.number + ahead.get(push.key, 0)
        if own > step:
            stay = _over(current, push)
            yield from ((one, step) for one in current[:stay])
            current, step = current[stay:], own
            ahead.update((one.key, step - one.number) for one in current)
        current.append(push)
        ahead[push.key] = step - push.number
    yield from ((one, step) for one in current)


def _over(current: list[Push], following: Push) -> int:
    """How many of a step's pushes are its own. Those still under way when the next step is known
    by its first key that repeats, which began when all others had been answered, are the next's."""
    answered = 0
    again = False
    for place, push in enumerate(current):
        if again and push.answered > following.pushed and answered <= push.pushed:
            return place
        again |= push.key == following.key
        answered = max(answered, push.answered)
    return len(current)
