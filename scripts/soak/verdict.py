"""What came of a disturbed job, and whether that is what we promise. Pure.

A fault either must not matter (the job goes on, all sums right), or it may end the job: then every
process that is left ends by itself within the fault's time, with an error of ours that names one
of the culprits. Nothing ever hangs, sums wrongly, or dies of a signal.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

WRONG_SUM_CODE = 99
# An exception of ours, as Python prints it; or the core's own line.
_TYPED = re.compile(
    r"(PeerLost|Corrupt|WaitTimeout|Exhausted|Closed|InvalidArgument)\w*Error"
    r"|mercury: the job has failed|\[mercury \w+( \d+)?\] error: "
)


@dataclass(frozen=True)
class Promise:
    """Of a kind of fault."""

    may_end: bool  # the job need not survive it
    may_go_on: bool  # the job need not end of it
    within_s: float  # after the fault, if it ends


@dataclass(frozen=True)
class Process:
    name: str
    code: int | None  # None: it still ran when the time was over
    output: str
    after_s: float  # from the fault to its end


@dataclass(frozen=True)
class Verdict:
    outcome: str  # "went on", "ended", or what is wrong
    detail: str = ""

    @property
    def right(self) -> bool:
        return self.outcome in ("went on", "ended")


def judge(promise: Promise, processes: Sequence[Process], culprits: Sequence[str]) -> Verdict:
    """`processes`: all but a victim that was killed or stopped."""
    for process in processes:
        if process.code == WRONG_SUM_CODE or "WRONG SUM" in process.output:
            return Verdict("wrong sum", process.name)
    for process in processes:
        if process.code is None:
            return Verdict("hang", f"{process.name} still runs")
        if process.code < 0 or "AddressSanitizer" in process.output:
            return Verdict("signal", f"{process.name} ended with {process.code}")
    if all(process.code == 0 for process in processes):
        if promise.may_go_on:
            return Verdict("went on")
        return Verdict("no end", "everybody ended well, though the fault was there")
    if not promise.may_end:
        failed = next(process for process in processes if process.code)
        return Verdict("ended without need", f"{failed.name}: {_last_line(failed.output)}")
    for process in processes:
        if process.code == 0:
            return Verdict("ended well alone", process.name)
        if not _TYPED.search(process.output):
            return Verdict("untyped", f"{process.name}: {_last_line(process.output)}")
        if not any(culprit in process.output for culprit in culprits):
            return Verdict(
                "wrong culprit",
                f"{process.name} does not name {' or '.join(culprits)}: "
                f"{_last_line(process.output)}",
            )
        if process.after_s > promise.within_s:
            return Verdict("late", f"{process.name} after {process.after_s:.1f} s")
    return Verdict("ended")


def _last_line(output: str) -> str:
    lines = output.strip().splitlines()
    return lines[-1] if lines else "(no output)"
