"""What came of a disturbed MLfabric job, and whether that is what we promise. Pure.

It goes on without any node but the scheduler, and without any worker unless all go in step. Of two
nodes that cannot reach each other, one at most is cut off. Then the model of whoever is the server
in the end is the sum of what its workers know to be committed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from scripts.soak.verdict import Process, Promise, Verdict, errors, last_line, never, spoken

MODES = ("async", "stale:2", "sync")
WORKER = "worker"


def must_end(mode: str, culprits: Sequence[str]) -> bool:
    """Whether a job cannot go on without any of these."""
    in_step = mode == "sync" and any(name.startswith(WORKER) for name in culprits)
    return in_step or list(culprits) == ["the scheduler"]


def judge_fabric(
    promise: Promise, mode: str, processes: Sequence[Process], culprits: Sequence[str]
) -> Verdict:
    """`processes`: all but a victim that was killed or stopped."""
    if (wrong := never(processes)) is not None:
        return wrong
    failed = [process for process in processes if process.code]
    if promise.may_end and must_end(mode, culprits) and (failed or not promise.may_go_on):
        return _ended(promise, processes, culprits)
    cut_off = [p for p in failed if promise.may_end and spoken(p.name) in culprits]
    if len(cut_off) > 1:
        return Verdict("ended without need", f"{cut_off[0].name} and {cut_off[1].name}")
    for process in failed:
        if process not in cut_off:
            return Verdict("ended without need", f"{process.name}: {last_line(process.output)}")
        if not _errors(process):
            return Verdict("untyped", f"{process.name}: {last_line(process.output)}")
    return _sums([process for process in processes if process.code == 0])


def _ended(promise: Promise, processes: Sequence[Process], culprits: Sequence[str]) -> Verdict:
    for process in processes:
        if process.code == 0:
            return Verdict("ended well alone", process.name)
        if not (said := _errors(process)):
            return Verdict("untyped", f"{process.name}: {last_line(process.output)}")
        if not any(_called(name) in line for line in said for name in culprits):
            whom = " or ".join(culprits)
            return Verdict("wrong culprit", f"{process.name} does not name {whom}: {said[-1]}")
        if process.after_s > promise.within_s:
            return Verdict("late", f"{process.name} after {process.after_s:.1f} s")
    return Verdict("ended")


def _errors(process: Process) -> list[str]:
    """A node that serves says in one line why it ends."""
    said = errors(process.output)
    if not process.name.startswith(WORKER):
        said += re.findall("^mercury: (.*)$", process.output, re.MULTILINE)
    return said


def _called(name: str) -> str:
    """As its node is: the first one of several has no number."""
    first = name.startswith(("server", "replica")) and name.endswith(" 0")
    return "the " + name.removesuffix(" 0") if first else name


def _sums(processes: Sequence[Process]) -> Verdict:
    models = [said for p in processes if (said := _said("model", p)) is not None]
    if len(models) != 1:
        return Verdict("wrong sum", f"{len(models)} nodes were the server in the end")
    for process in processes:
        if not process.name.startswith(WORKER):
            continue
        of, knows = models[0][int(process.name.rpartition("_")[2])], _said("committed", process)
        if of != knows:
            return Verdict("wrong sum", f"{process.name} knows of {knows}, the model has {of}")
    return Verdict("went on")


def _said(word: str, process: Process) -> Any:
    found = re.findall(rf"^{word} (\[.*\])$", process.output, re.MULTILINE)
    return json.loads(found[-1]) if found else None
