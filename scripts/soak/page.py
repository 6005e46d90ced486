"""What a soak came to, as a page: faults and their outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scripts.soak.faults import FAULTS, Fault
from scripts.soak.verdict import Verdict


@dataclass(frozen=True)
class Round:
    seed: int
    van: str
    fault: str
    verdict: Verdict
    seconds: float  # from the fault to the end of the last process, if the job ended


def _promise(fault: Fault) -> str:
    if not fault.promise.may_end:
        return "goes on, all sums right"
    within = f"ends within {fault.promise.within_s:g} s"
    return f"{within}, or goes on" if fault.promise.may_go_on else within


def table(rounds: Sequence[Round]) -> str:
    """Markdown."""
    lines = [
        "| fault | what it is | promised | mode | jobs | went on | ended | slowest (s) | wrong |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for fault in FAULTS:
        for van in ("zmq", "mercury"):
            own = [r for r in rounds if r.fault == fault.name and r.van == van]
            if not own:
                continue
            ended = [r for r in own if r.verdict.outcome == "ended"]
            slowest = f"{max(r.seconds for r in ended):.1f}" if ended else ""
            went_on = sum(r.verdict.outcome == "went on" for r in own)
            wrong = sum(not r.verdict.right for r in own)
            lines.append(
                f"| {fault.name} | {fault.says} | {_promise(fault)} | {van} | {len(own)} "
                f"| {went_on} | {len(ended)} | {slowest} | {wrong} |"
            )
    return "\n".join(lines) + "\n"


def page(rounds: Sequence[Round], command: str, origin: str, hours: float) -> str:
    wrong = [r for r in rounds if not r.verdict.right]
    text = (
        "# Faults\n\n"
        "What jobs come to when something goes wrong: `make soak` starts jobs of real processes,\n"
        "each on a host of its own behind a middlebox, disturbs each once at a random moment and\n"
        "place, and judges what comes of it. A job goes on with all sums right, or every process\n"
        "that is left ends by itself, in time, with an error that names the culprit.\n\n"
        f"Made by `{command}`, {origin}: {len(rounds)} jobs in {hours:.1f} h, "
        f"{len(wrong)} of them wrong.\n\n" + table(rounds)
    )
    if wrong:
        text += (
            '\nWhat was wrong; `make soak SOAK="--seed SEED --rounds 1"` does the same again:\n\n'
        )
        text += "| seed | mode | fault | outcome | detail |\n|---|---|---|---|---|\n"
        for r in wrong:
            detail = r.verdict.detail.replace("|", "\\|")
            text += f"| {r.seed} | {r.van} | {r.fault} | {r.verdict.outcome} | {detail} |\n"
    return text
