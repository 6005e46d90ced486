"""What training with fewer bytes comes to: three models, five seeds, each codec; and DDP's ways.

Two workers on one machine share each batch. The loss is that of data which was not trained on,
after each quarter of the steps. All workers must have the same weights in the end.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace

from scripts.lab.benches.case import Case, Figure, Figures, Setting
from scripts.lab.systems.job import JobFailed, Outcome
from scripts.lab.systems.system import System
from scripts.lab.workloads.job_config import Config

WORKER = ("-m", "scripts.lab.systems.torch_accuracy")
SETTING = Setting(2, 2, rate=None, loopback=True, beside=True)
STEPS = {"lenet5": 240, "resnet18": 60, "transformer": 100}
WORDS = ("float32", "bf16", "int8")
HOOKS = ("bf16", "powersgd 1", "powersgd 4")  # and the ranks of the last two
HOOKED = "transformer"
STEP_S = 0.5
SEEDS = 5


def _measure(outcome: Outcome) -> Figures:
    first, *others = outcome.results
    if any(other["digest"] != first["digest"] for other in others):
        raise JobFailed("the workers' weights differ")
    figures = {}
    *before, last = zip(*first["losses"])
    for part, losses in enumerate(before, 1):
        after = f"loss after {part} of {len(before) + 1}"
        figures[after] = Figure(statistics.fmean(losses), "")
    figures["loss"] = Figure(statistics.fmean(last), "")
    figures["loss, spread"] = Figure(statistics.stdev(last), "")
    figures["right"] = Figure(100 * statistics.fmean(first["right"]), "%")
    figures["right, spread"] = Figure(100 * statistics.stdev(first["right"]), "%")
    return figures


def _ways(system: System, model: str) -> list[System]:
    if system.ours:
        return [system.variant(word, LAB_WIRE=word) for word in WORDS]
    return [system.variant(hook, LAB_HOOK=hook) for hook in HOOKS if model == HOOKED]


def accuracy(systems: Sequence[System], length: str) -> list[Case]:
    cases = []
    for model, steps in STEPS.items():
        rounds = steps // 10 if length == "quick" else steps
        config = Config("train", {"count": 1, "bytes": 4}, rounds=rounds)
        what = f"{model}, {rounds} steps, {SEEDS} seeds: means and standard deviations"
        for system in systems:
            for way in _ways(system, model):
                made = replace(way, program=WORKER)
                seconds = STEP_S * rounds * SEEDS
                case = Case("accuracy", what, made, SETTING, config, _measure, seconds)
                cases.append(replace(case, env={"LAB_TASK": model}, timeout_s=3600))
    return cases
