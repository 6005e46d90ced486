"""Which fragment of a model is sent after which step, and when its result is applied; and which
parameters are a fragment.

Fragments take turns. Of one, `every` steps are between two results, so that one result is applied
each `every / fragments` steps; its deltas are sent `delay` steps before. No two are under way at
once: where one takes longer than that, several would only make the links' queue longer.

Pure: steps are counted from 1, by whoever asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from pslite_ext.errors import InvalidArgumentError


def refuse(text: str) -> NoReturn:
    raise InvalidArgumentError(f"mercury.local_steps: {text}")


def _check_whole(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        refuse(f"{name} is {value!r}; a whole number is needed, {least} or more")


def check_alpha(alpha: Any) -> float:
    if isinstance(alpha, bool) or not isinstance(alpha, (int, float)) or not 0 <= alpha <= 1:
        refuse(f"alpha is {alpha!r}; a number from 0 to 1 is needed")
    return float(alpha)


@dataclass(frozen=True)
class FragmentSchedule:
    every: int
    fragments: int = 1
    delay: int = 0

    def __post_init__(self) -> None:
        _check_whole("every", self.every, 1)
        _check_whole("fragments", self.fragments, 1)
        _check_whole("delay", self.delay, 0)
        if self.every % self.fragments:
            refuse(
                f"every={self.every} is not a multiple of the number of fragments, "
                f"{self.fragments}: one fragment is synchronized each every / fragments steps"
            )
        if self.delay >= self.interval:
            refuse(
                f"delay={self.delay} is not less than every / fragments = {self.interval}: a "
                "fragment is applied before the next one is sent"
            )

    @property
    def interval(self) -> int:
        """Steps from one fragment's result to the next one's."""
        return self.every // self.fragments

    def applied_after(self, step: int) -> int | None:
        """Whose result is, after that step."""
        turn, rest = divmod(step, self.interval)
        return None if rest or not turn else (turn - 1) % self.fragments

    def sent_after(self, step: int) -> int | None:
        return self.applied_after(step + self.delay)


def cut_in_order(sizes: Sequence[int], parts: int) -> list[range]:
    """Neighbours together, in parts of about equal size, none empty: each takes what is nearest to
    its share of what is left."""
    if len(sizes) < parts:
        refuse(f"fragments={parts}, but the optimizer has {len(sizes)} parameters only")
    made, begin, left = [], 0, sum(sizes)
    for part in range(parts, 0, -1):
        share, taken, end = left / part, 0, begin
        last = len(sizes) - (part - 1)  # the others need one each
        while end < last and (end == begin or part == 1 or taken + sizes[end] / 2 <= share):
            taken += sizes[end]
            end += 1
        made.append(range(begin, end))
        begin, left = end, left - taken
    return made
