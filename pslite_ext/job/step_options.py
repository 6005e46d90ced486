"""What an optimizer is told at each step, compared among workers now and then.

Each worker has an optimizer of its own. If one is told another batch size, or another learning
rate, its weights leave the others', and no sum shows it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

SPACING = 64  # steps between two comparisons; more often at first
CHANGES = 8  # that are said in words


def is_seldom_compared(step: int) -> bool:
    """Where it costs as much as a step."""
    return step & (step - 1) == 0


def is_compared(step: int) -> bool:
    return step % SPACING == 0 or is_seldom_compared(step)


class StepOptions:
    """Of one optimizer."""

    def __init__(
        self,
        compare: Callable[[int, str], None],
        is_compared: Callable[[int], bool] = is_compared,
    ) -> None:
        """`compare(step, told)` raises, on one worker at least, unless all say the same of it."""
        self._compare, self._is_compared = compare, is_compared
        self._steps = 0
        self._now: dict[str, str] = {}
        self._changes: list[str] = []  # the last ones
        self._digest = ""  # of all of them

    def step(self, now: Mapping[str, str], update: int) -> None:
        """As each step begins: its options, and the number of its update."""
        self._steps += 1
        changed = ", ".join(
            f"{name} = {now.get(name)}"
            for name in {**self._now, **now}
            if self._now.get(name) != now.get(name)
        )
        self._now = dict(now)
        if changed:
            line = f"{changed} from update {update} on"
            self._changes = [*self._changes, line][-CHANGES:]
            said = f"{self._digest}{line}".encode()
            self._digest = hashlib.blake2b(said, digest_size=8).hexdigest()
        if self._is_compared(self._steps):
            self._compare(self._steps, f"{'; '.join(self._changes)} (digest {self._digest})")

    def state(self) -> dict[str, Any]:
        """What a worker that comes later goes on from."""
        return {
            "steps": self._steps,
            "now": self._now,
            "changes": self._changes,
            "digest": self._digest,
        }

    def stand(self, state: Mapping[str, Any]) -> None:
        self._steps, self._now = state["steps"], dict(state["now"])
        self._changes, self._digest = list(state["changes"]), state["digest"]
