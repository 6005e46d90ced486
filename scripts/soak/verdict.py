"""What came of a disturbed job, and whether that is what we promise. Pure.

A fault either must not matter (the job goes on, all sums right), or it may end the job: then every
process that is left ends by itself within the fault's time, with an error of ours that names the
culprit, or both ends of a link. Nothing ever hangs, sums wrongly, or dies of a signal. Only lines
that are errors count, without the name of who says them: else everybody would name himself.
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
_SPEAKER = re.compile(r"^\[mercury [^\]]*\] \w+: |^mercury: \w+ \d+: ")
_EXCEPTION = re.compile(r"\b(\w+)Error\b: ")
_LOSS = re.compile(r"\blost (worker|server|the scheduler)\b|cannot reach each other")


@dataclass(frozen=True)
class Promise:
    """Of a kind of fault."""

    may_end: bool  # the job need not survive it
    may_go_on: bool  # the job need not end of it
    within_s: float  # after the fault, if it ends
    kind: str = ""  # of the error, if only one is right: "Corrupt"


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
        return self.outcome in ("went on", "ended", NOT_STRUCK)


NOT_STRUCK = "did not strike"


def spoken(name: str) -> str:
    """As our messages call a node."""
    return "the scheduler" if name.startswith("scheduler") else name.replace("_", " ")


def to_name(process: str, culprits: Sequence[str]) -> list[Sequence[str]]:
    """Whom a process must name: all of one of these. Of a link with the scheduler, everybody names
    the node that the scheduler has lost; the node itself may name the scheduler, which it has lost.
    """
    if len(culprits) != 2 or "the scheduler" not in culprits:
        return [culprits]
    node = next(culprit for culprit in culprits if culprit != "the scheduler")
    return [[node], ["the scheduler"]] if spoken(process) == node else [[node]]


def errors(output: str) -> list[str]:
    """The lines that are errors of ours, without who says them."""
    return [_SPEAKER.sub("", line) for line in output.splitlines() if _TYPED.search(line)]


def _names(line: str, culprits: Sequence[str]) -> bool:
    return all(re.search(rf"\b{re.escape(culprit)}\b", line) for culprit in culprits)


def _is_kind(line: str, kind: str) -> bool:
    found = _EXCEPTION.search(line)
    return found.group(1) == kind if found else not _LOSS.search(line)


def judge_elastic(processes: Sequence[Process], culprits: Sequence[str]) -> Verdict:
    """Of a job that goes on without those that it loses: all others end well, alike."""
    if (wrong := never(processes)) is not None:
        return wrong
    for process in processes:
        if process.code and spoken(process.name) not in culprits:
            return Verdict("ended without need", f"{process.name}: {last_line(process.output)}")
    ended = [p for p in processes if p.name.startswith("worker") and p.code == 0]
    if not ended:
        return Verdict("ended without need", "no worker has trained on")
    digests = {_last_trained(process.output) for process in ended}
    if len(digests) > 1 or "" in digests:
        return Verdict("wrong sum", f"not all have had the same: {', '.join(sorted(digests))}")
    return Verdict("went on")


def _last_trained(output: str) -> str:
    found = re.findall(r"^trained (\w+)$", output, re.MULTILINE)
    return found[-1] if found else ""


def never(processes: Sequence[Process]) -> Verdict | None:
    """What is wrong whatever has been done."""
    for process in processes:
        if process.code == WRONG_SUM_CODE or "WRONG SUM" in process.output:
            return Verdict("wrong sum", process.name)
    for process in processes:
        if process.code is None:
            return Verdict("hang", f"{process.name} still runs")
        if process.code < 0 or "AddressSanitizer" in process.output:
            return Verdict("signal", f"{process.name} ended with {process.code}")
    return None


def judge(promise: Promise, processes: Sequence[Process], culprits: Sequence[str]) -> Verdict:
    """`processes`: all but a victim that was killed or stopped."""
    if (wrong := never(processes)) is not None:
        return wrong
    if all(process.code == 0 for process in processes):
        if promise.may_go_on:
            return Verdict("went on")
        return Verdict("no end", "everybody ended well, though the fault was there")
    if not promise.may_end:
        failed = next(process for process in processes if process.code)
        return Verdict("ended without need", f"{failed.name}: {last_line(failed.output)}")
    for process in processes:
        if process.code == 0:
            return Verdict("ended well alone", process.name)
        said = errors(process.output)
        if not said:
            return Verdict("untyped", f"{process.name}: {last_line(process.output)}")
        wanted = to_name(process.name, culprits)
        if not any(_names(line, names) for line in said for names in wanted):
            whom = " or ".join(" and ".join(names) for names in wanted)
            return Verdict("wrong culprit", f"{process.name} does not name {whom}: {said[-1]}")
        if promise.kind and not all(_is_kind(line, promise.kind) for line in said):
            other = next(line for line in said if not _is_kind(line, promise.kind))
            return Verdict("wrong error", f"{process.name} says not {promise.kind}Error: {other}")
        if process.after_s > promise.within_s:
            return Verdict("late", f"{process.name} after {process.after_s:.1f} s")
    return Verdict("ended")


def last_line(output: str) -> str:
    lines = output.strip().splitlines()
    return lines[-1] if lines else "(no output)"
