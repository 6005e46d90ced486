"""How soon a transport uses a link that has just become faster or slower."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace

from scripts.lab.bed.disturbance import Steps
from scripts.lab.benches.case import TCP_SHARE, USUAL, Case, Figure, Figures, Setting
from scripts.lab.systems.job import Outcome
from scripts.lab.systems.system import System
from scripts.lab.workloads.job_config import Config

LOW, HIGH = 0.3e9, 1e9
EVERY_S = 3.0
SAMPLE_S = 0.05
WINDOW = 5  # samples over which throughput is averaged: it comes in bursts
NEAR = 0.9  # of what the new rate leaves for data counts as adapted
BULK, BULK_BYTES = 16, 2 << 20

Series = Sequence[Sequence[float]]  # (clock, bytes sent, bytes received) so far


def adapted_after_s(series: Series, changed: float, until: float, rate: float) -> float | None:
    """From the change until a window of samples that carries NEAR of the rate; None: never."""
    after = [point for point in series if changed <= point[0] <= until]
    for first, last in zip(after, after[WINDOW:]):
        carried = 8 * min(last[way] - first[way] for way in (1, 2)) / (last[0] - first[0])
        if carried >= NEAR * TCP_SHARE * rate:
            # The window's start: from then on it was carried.
            return first[0] - changed
    return None


def _figures(outcome: Outcome, steps: Steps) -> Figures:
    worker, series = outcome.workers[0], outcome.results[0]["series"]
    begin, end = worker["begin"]["t"], worker["end"]["t"]
    took: dict[float, list[float]] = {LOW: [], HIGH: []}
    for (changed, rate), (until, _) in zip(steps.changes, steps.changes[1:]):
        if begin <= changed and until <= end:
            found = adapted_after_s(series, changed, until, rate)
            took[rate].append(EVERY_S if found is None else found)
    figures = {
        f"{what} link used after": Figure(1000 * statistics.median(times), "ms")
        for what, times in (("faster", took[HIGH]), ("slower", took[LOW]))
        if times
    }
    goodput = 8 * outcome.results[0]["flood_bytes"] / (end - begin)
    figures["goodput each way / mean rate"] = Figure(goodput / statistics.mean((LOW, HIGH)), "")
    return figures


def adapt(systems: Sequence[System], seconds: float, setting: Setting = USUAL) -> list[Case]:
    rounds = round(seconds * statistics.mean((LOW, HIGH)) / 8 / (BULK * BULK_BYTES))
    config = Config("flood", {"count": BULK, "bytes": BULK_BYTES}, rounds=rounds, sample_s=SAMPLE_S)
    what = f"{LOW / 1e6:g} and {HIGH / 1e6:g} Mbit/s in turn, each for {EVERY_S:g} s"
    cases = []
    for system in systems:
        steps = Steps((HIGH, LOW), EVERY_S)

        def measure(outcome: Outcome, steps: Steps = steps) -> Figures:
            return _figures(outcome, steps)

        def first_change(outcome: Outcome, steps: Steps = steps) -> float:
            """So that all systems' charts show the same changes at the same time."""
            begin = outcome.workers[0]["begin"]["t"]
            return next((at for at, rate in steps.changes if at >= begin and rate == HIGH), begin)

        case = Case("adapt", what, system, setting, config, measure, 1.5 * seconds)
        cases.append(replace(case, disturbance=steps, zero=first_change))
    return cases
