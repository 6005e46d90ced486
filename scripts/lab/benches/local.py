"""Local steps on links that are far too slow for gradients: the time to a loss.

A transformer, four workers that share each batch, a server beside each, links of 50 Mbit/s. The
loss is the one that synchronous training comes to after about STEPS steps, of data that was not
trained on. In local steps it is that of the weights which all workers have alike, looked at when
a part of them has just come together; nothing is taken for a loss between two looks.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from scripts.lab.benches.accuracy import HOOKED, HOOKS, SOONER, STEP_S, WORKER, trained_by
from scripts.lab.benches.case import Case, Figure, Figures, Setting
from scripts.lab.benches.wire import CONNECTIONS
from scripts.lab.systems.job import JobFailed, Outcome
from scripts.lab.systems.system import System
from scripts.lab.workloads.job_config import Config

SETTING = Setting(4, 4, rate=50e6, beside=True)
LOSS, STEPS = 2.9, 60
LONGEST = 8  # times as many steps, at most
SEEDS = 3
TESTED = 100  # of 64 characters each
POWERSGD = "powersgd 4"


@dataclass(frozen=True)
class Way:
    name: str
    wire: str
    arguments: dict[str, Any]  # of local steps; none: synchronous
    look: int  # at the loss, each so many steps


WAYS = (
    Way("float32", "float32", {}, 10),
    Way("int8", "int8", {}, 10),
    Way("every 20, float32", "float32", {"every": 20}, 20),
    Way("every 20, int8", "int8", {"every": 20}, 20),
    Way("every 20, 4 fragments", "int8", {"every": 20, "fragments": 4, "delay": 4}, 20),
    Way("every 100, int8", "int8", {"every": 100}, 100),
    Way("every 100, 4 fragments", "int8", {"every": 100, "fragments": 4, "delay": 10}, 25),
)


def measured(outcome: Outcome, look: int) -> Figures:
    """The first look that is good enough is the last."""
    trained = trained_by(outcome)
    if late := [seed["losses"][-1] for seed in trained if seed["losses"][-1] > LOSS]:
        raise JobFailed(f"a loss of {LOSS:g} was not reached; it came to {min(late):.3f}")
    reached = [seed["seconds"][-1] for seed in trained]
    steps = [look * len(seed["losses"]) for seed in trained]
    figures = {
        f"time to a loss of {LOSS:g}": Figure(statistics.fmean(reached), "s"),
        "steps": Figure(statistics.fmean(steps), ""),
        "time of a step": Figure(sum(reached) / sum(steps), "s"),
        "loss then": Figure(statistics.fmean(seed["losses"][-1] for seed in trained), ""),
    }
    if len(reached) > 1:
        figures["spread"] = Figure(statistics.stdev(reached), "s")
    return figures


def _systems(systems: Sequence[System]) -> list[tuple[System, int]]:
    """Each way to train, and after how many steps it looks."""
    made = []
    for system in systems:
        if not system.ours:
            hook = {**HOOKS[POWERSGD], "LAB_CONNECTIONS": CONNECTIONS, **SOONER}
            made.append((system.variant(POWERSGD, **hook), 10))
            continue
        for way in WAYS:
            local = {"LAB_LOCAL": json.dumps(way.arguments)} if way.arguments else {}
            made.append((system.variant(way.name, LAB_WIRE=way.wire, **local), way.look))
    return made


def local(systems: Sequence[System], length: str) -> list[Case]:
    seeds = 1 if length == "quick" else SEEDS
    cases = []
    for system, look in _systems(systems):
        longest = LONGEST * STEPS // look * look
        env = {
            "LAB_TASK": HOOKED,
            "LAB_SEEDS": str(seeds),
            "LAB_LOOKS": str(longest // look),
            "LAB_UNTIL": str(LOSS),
            "LAB_TESTED": str(TESTED),
        }
        cases.append(
            Case(
                *("local", f"{HOOKED}, to a loss of {LOSS:g}, {seeds} seeds"),
                *(replace(system, program=WORKER), SETTING),
                *(
                    Config("train", {"count": 1, "bytes": 4}, rounds=longest),
                    partial(measured, look=look),
                ),
                10 * STEP_S * STEPS * seeds,
                env=env,
                timeout_s=7200,
            )
        )
    return cases
