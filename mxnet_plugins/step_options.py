"""What a Trainer's optimizer is told at each step, compared among workers now and then.

Each worker has an optimizer of its own. If one is told another batch size, or another learning
rate, its weights leave the others', and no sum shows it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

SPACING = 64  # steps between two comparisons; more often at first
CHANGES = 8  # that are said in words
_OTHERS = ("num_update", "begin_num_update", "aggregate_num")
_PLAIN = (bool, int, float, str)


def options_of(optimizer: Any) -> dict[str, str]:
    """All that is a plain value and is set, and its schedule's."""
    said = _plain(optimizer, "")
    scheduler = getattr(optimizer, "lr_scheduler", None)
    if scheduler is not None:
        said.pop("lr", None)  # of no use beside a schedule
        said |= {"schedule": type(scheduler).__name__, **_plain(scheduler, "schedule's ")}
    return said


def _plain(its: Any, whose: str) -> dict[str, str]:
    return {
        whose + name: _text(value)
        for name, value in vars(its).items()
        if isinstance(value, _PLAIN)
        and value is not False
        and name not in _OTHERS
        and not name.startswith("_")
    }


def _text(value: Any) -> str:
    """Processors of different kinds may differ in a number's last digits."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def is_compared(step: int) -> bool:
    return step % SPACING == 0 or step & (step - 1) == 0


class StepOptions:
    """Of one Trainer."""

    def __init__(self, claim: Callable[[int, str], None]) -> None:
        """`claim(step, told)` waits until all workers have said the same of this step."""
        self._claim = claim
        self._steps = 0
        self._now: dict[str, str] = {}
        self._changes: list[str] = []  # the last ones
        self._digest = ""  # of all of them

    def step(self, optimizer: Any) -> None:
        """As each step begins."""
        self._steps += 1
        now = {"optimizer": type(optimizer).__name__, **options_of(optimizer)}
        changed = ", ".join(
            f"{name} = {now.get(name)}"
            for name in {**self._now, **now}
            if self._now.get(name) != now.get(name)
        )
        self._now = now
        if changed:
            line = f"{changed} from update {optimizer.num_update + 1} on"
            self._changes = [*self._changes, line][-CHANGES:]
            said = f"{self._digest}{line}".encode()
            self._digest = hashlib.blake2b(said, digest_size=8).hexdigest()
        if is_compared(self._steps):
            self._claim(self._steps, f"{'; '.join(self._changes)} (digest {self._digest})")

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
