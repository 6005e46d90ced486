"""The page of a soak: faults and their outcomes."""

from __future__ import annotations

from collections.abc import Sequence

from scripts.soak.faults import FAULTS, GRACE_S, Fault
from scripts.soak.record import Round, Run, rounds_of
from scripts.soak.verdict import NOT_STRUCK


def _promise(fault: Fault, van: str) -> str:
    if van == "elastic" and fault.goes_on_without([], 2):
        return "goes on without who is hit, the same sums for all others"
    if van == "mlfabric" and fault.promise.may_end:
        return "goes on without who is hit; in step, ends without a worker"
    if not fault.promise.may_end:
        return "goes on, all sums right"
    how = f" as {fault.promise.kind}Error" if fault.promise.kind else ""
    within = f"ends{how} within {fault.promise.within_s:g} s"
    return f"{within}, or goes on" if fault.promise.may_go_on else within


def table(rounds: Sequence[Round]) -> str:
    """Markdown."""
    lines = [
        "| fault | what it is | promised | mode | jobs | went on | ended | slowest (s) "
        "| did not strike | wrong |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for fault in FAULTS:
        for van in ("zmq", "mercury", "elastic", "mlfabric"):
            own = [r for r in rounds if r.fault == fault.name and r.van == van]
            if not own:
                continue
            ended = [r for r in own if r.verdict.outcome == "ended"]
            slowest = f"{max(r.seconds for r in ended):.1f}" if ended else ""
            went_on, missed = (
                sum(r.verdict.outcome == outcome for r in own)
                for outcome in ("went on", NOT_STRUCK)
            )
            wrong = sum(not r.verdict.right for r in own)
            lines.append(
                f"| {fault.name} | {fault.says} | {_promise(fault, van)} | {van} | {len(own)} "
                f"| {went_on} | {len(ended)} | {slowest} | {missed} | {wrong} |"
            )
    return "\n".join(lines) + "\n"


def again(done: Round) -> str:
    """The command that draws the same round."""
    words = f"--seed {done.seed} --rounds 1 {done.narrowed}".strip()
    return f'make soak SOAK="{words}"'


def _hours(rounds: Sequence[Round]) -> float:
    return sum(r.took_s for r in rounds) / 3600


def page(runs: Sequence[Run]) -> str:
    rounds = rounds_of(runs)
    wrong = [r for r in rounds if not r.verdict.right]
    text = (
        "# Faults\n\n"
        "`make soak` starts jobs of real processes, each on its own host behind a middlebox. It\n"
        "disturbs each job once, at a random moment and place, and judges the outcome. Either\n"
        "the job goes on and all sums are right, or every remaining process ends by itself, in\n"
        "time, with an error that names the culprit (for a link between a worker and a server:\n"
        "both ends). Afterwards, no process, shared memory or temporary file may be left. The\n"
        "time limits are those of [operations](operations.md), plus\n"
        f"{GRACE_S:g} s for all processes to end.\n\n"
        "An [elastic](elastic.md) job goes on without the nodes that are hit. So does one under\n"
        "[MLfabric](fabric.md), in any of its modes, unless it is the scheduler that is hit, or\n"
        "all workers go in step and one is; its model must then be the sum of what its workers\n"
        "know to be committed. These have one server or three, any of which may be hit, and\n"
        "replicas; without one, a lost server ends the job.\n\n"
        f"{len(rounds)} jobs in {_hours(rounds):.1f} h, {len(wrong)} of them wrong.\n\n"
    )
    text += table(rounds) + "\nMade by:\n\n"
    for run in runs:
        seeds = [r.seed for r in run.rounds]
        text += (
            f"- `{run.command}`, {run.began}, commit {run.commit}: {len(seeds)} jobs in "
            f"{_hours(run.rounds):.2f} h, seeds {min(seeds)} to {max(seeds)}\n"
        )
    if wrong:
        text += "\nWhat was wrong, and what does the same again:\n\n"
        text += "| seed | mode | fault | outcome | detail | again |\n|---|---|---|---|---|---|\n"
        for r in wrong:
            detail = r.verdict.detail.replace("|", "\\|").replace("\n", " ")
            text += (
                f"| {r.seed} | {r.van} | {r.fault} | {r.verdict.outcome} | {detail} "
                f"| `{again(r)}` |\n"
            )
    return text
