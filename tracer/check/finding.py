"""What a check says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np

from tracer.format.record import OPERATIONS, Bools, Trace, node_text

ERROR, WARNING = "error", "warning"


@dataclass(frozen=True)
class Finding:
    severity: str
    rule: str
    where: str  # a file, or nodes
    text: str
    count: int = 1

    def __str__(self) -> str:
        return f"{self.severity}: {self.where}: {self.text} [{self.rule}]"

    def as_dict(self) -> dict[str, str | int]:
        return asdict(self)


def describe(trace: Trace, row: int) -> str:
    r = trace.records
    place = f"{r.key[row]}-{r.op_num[row]}-{node_text(int(r.node[row]))}"
    return f"record {r.id[row]} ({OPERATIONS[r.operation[row]]} {place})"


def and_more(count: int) -> str:
    """After the first of so many."""
    return f", and {count - 1} more" if count > 1 else ""


def report(
    trace: Trace, rule: str, bad: Bools, text: str, severity: str = ERROR
) -> Iterator[Finding]:
    """One finding for all bad records of a file: the first by name, the others by number."""
    rows = np.flatnonzero(bad)
    if len(rows):
        what = f"{describe(trace, int(rows[0]))} {text}{and_more(len(rows))}"
        yield Finding(severity, rule, trace.path, what, len(rows))
