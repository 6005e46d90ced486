"""A measured figure with its repeats, or one that has not been measured."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, replace

from scripts.lab.benches.case import Row
from scripts.lab.report.results import APART, SOME_APART, number, quotients

NOT_MEASURED = "not measured yet"


@dataclass(frozen=True)
class Quantity:
    """Prints its median and half the distance of its extremes."""

    values: tuple[float, ...] = ()  # one of each repeat; none: not measured
    unit: str = ""
    run: str = ""  # it was measured in
    by_turns: bool = True  # it is no quotient of what different runs have measured

    @classmethod
    def of(cls, row: Row) -> Quantity:
        return cls(tuple(row.values), row.unit, row.run)

    @property
    def known(self) -> bool:
        return bool(self.values)

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def repeats(self) -> int:
        return len(self.values)

    def over(self, other: Quantity) -> Quantity:
        if not (self.known and other.known):
            return Quantity()
        by_turns = self.run == other.run
        values = quotients(self.values, other.values, by_turns)
        return Quantity(tuple(values), run=self.run, by_turns=by_turns)

    def bare(self) -> Quantity:
        """Where the unit is said elsewhere."""
        return replace(self, unit="")

    def times(self, factor: float, unit: str = "") -> Quantity:
        values = tuple(value * factor for value in self.values)
        return replace(self, values=values, unit=unit or self.unit)

    def beside(self, paper: float) -> str:
        """It, as a part of the paper's figure; nothing if it is not known."""
        return number(self.median / paper) if self.known else ""

    def __str__(self) -> str:
        if not self.known:
            return NOT_MEASURED
        spread = (max(self.values) - min(self.values)) / 2
        parts = [number(self.median), f"± {number(spread)}" if spread > 0 else "", self.unit]
        parts.append("" if self.by_turns else f"({APART})")
        return " ".join(part for part in parts if part)


def least(quantities: list[Quantity]) -> Quantity:
    """The one with the least median; unknown if none is known."""
    return min((q for q in quantities if q.known), key=lambda q: q.median, default=Quantity())


def most(quantities: list[Quantity]) -> Quantity:
    return max((q for q in quantities if q.known), key=lambda q: q.median, default=Quantity())


def between(quantities: list[Quantity], unit: str = "") -> str:
    """The least and the greatest median of what is known."""
    known = [q for q in quantities if q.known]
    if not known:
        return NOT_MEASURED
    ends = (number(least(known).median), number(most(known).median))
    apart = "" if all(q.by_turns for q in known) else SOME_APART
    return " ".join(filter(None, (" to ".join(dict.fromkeys(ends)), unit, apart)))
