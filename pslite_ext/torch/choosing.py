"""wire="auto": as float32 where nobody waits for the network; where all do, as bf16, and then int8.

Whether less helps is tried, not guessed: workers may wait for a slow one of theirs, which has
nothing to do with bytes. What did not help, or is needed no more, is undone; the next trial then
comes later.

Pure: what it hears of iterations is all that it knows, and where all workers hear the same, all
choose the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from pslite_ext.wire_words import PLAIN

NARROWER = (PLAIN, "bf16", "int8")
WAITS = 0.05  # of an iteration, and something is to be tried
RESTS = 0.01  # less than that, and more bytes may do as well
HELPS = 0.8  # of the waiting before
SETTLE, WINDOW = 3, 10  # iterations after a change that do not count; that are looked at together
# Iterations from a trial to the next in the same direction, twice as many after each in vain; and
# from fewer bytes to the first trial with more.
PATIENCE = 100
FEWER, MORE = 1, -1


@dataclass(frozen=True)
class _Trial:
    before: int
    waited_s: float


class Choice:
    def __init__(self) -> None:
        self._at = 0
        self._trial: _Trial | None = None
        self._settling = SETTLE
        self._window: list[tuple[float, float]] = []
        self._rest = {FEWER: 0, MORE: 0}  # by direction
        self._patience = {FEWER: PATIENCE, MORE: PATIENCE}

    def state(self) -> dict[str, Any]:
        """For a worker that comes later; numbers and lists."""
        trial = self._trial and [self._trial.before, self._trial.waited_s]
        directions = [[self._rest[d], self._patience[d]] for d in (FEWER, MORE)]
        return {
            "at": self._at,
            "trial": trial,
            "settling": self._settling,
            "window": self._window,
            "directions": directions,
        }

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> Choice:
        made = cls()
        made._at, made._settling = state["at"], state["settling"]
        made._trial = _Trial(*state["trial"]) if state["trial"] else None
        made._window = [(took, waited) for took, waited in state["window"]]
        for direction, (rest, patience) in zip((FEWER, MORE), state["directions"]):
            made._rest[direction], made._patience[direction] = rest, patience
        return made

    @property
    def word(self) -> str:
        return NARROWER[self._at]

    def heard(self, took_s: float, waited_s: float) -> bool:
        """Of an iteration, as all workers had it; whether the word is another from now on."""
        if self._settling:
            self._settling -= 1
            return False
        self._window.append((took_s, waited_s))
        if len(self._window) < WINDOW:
            return False
        took, waited = (fmean(each) for each in zip(*self._window))
        self._window.clear()
        before = self._at
        self._choose(took, waited)
        if self._at == before:
            return False
        self._settling = SETTLE
        return True

    def _choose(self, took_s: float, waited_s: float) -> None:
        waits = waited_s > WAITS * took_s
        trial, self._trial = self._trial, None
        if trial is not None:
            direction = self._at - trial.before
            in_vain = waited_s > HELPS * trial.waited_s if direction == FEWER else waits
            if in_vain:
                self._at = trial.before
                self._rest[direction] = self._patience[direction]
                self._patience[direction] *= 2
                return
            if direction == FEWER:
                self._rest[MORE] = self._patience[MORE]
        if waits and self._at + 1 < len(NARROWER):
            self._try(FEWER, waited_s)
        elif waited_s < RESTS * took_s and self._at > 0:
            self._try(MORE, waited_s)

    def _try(self, direction: int, waited_s: float) -> None:
        if self._rest[direction] > 0:
            self._rest[direction] -= WINDOW
            return
        self._trial = _Trial(self._at, waited_s)
        self._at += direction
