"""What training with fewer bytes comes to: three models, five seeds, each codec; and DDP's ways.

Two workers on one machine share each batch. The loss is that of data which was not trained on,
after each quarter of the steps. All workers must have the same weights in the end.

And how long it takes to a loss that all reach, where the link is what is waited for.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from scripts.lab.benches.case import Case, Figure, Figures, Setting
from scripts.lab.benches.pytorch import with_sizes
from scripts.lab.benches.wire import CONNECTIONS
from scripts.lab.systems.job import JobFailed, Outcome
from scripts.lab.systems.system import System
from scripts.lab.workloads.job_config import Config

WORKER = ("-m", "scripts.lab.systems.torch_accuracy")
SETTING = Setting(2, 2, rate=None, loopback=True, beside=True)
STEPS = {"lenet5": 240, "resnet18": 60, "transformer": 100}
WORDS = ("float32", "bf16", "int8")
# One bucket for PowerSGD: its sums of several overtake each other over Gloo, which it cannot bear.
HOOKS = {
    "bf16": {"LAB_HOOK": "bf16"},
    "powersgd 1": {"LAB_HOOK": "powersgd 1", "LAB_BUCKET_MB": "1024"},
    "powersgd 4": {"LAB_HOOK": "powersgd 4", "LAB_BUCKET_MB": "1024"},
}
SOONER = {"LAB_PLAIN_STEPS": "2"}  # PowerSGD's first steps are plain: as few as it allows
HOOKED = "transformer"
STEP_S = 0.5
SEEDS, LOOKS = 5, 4
# To a loss, on links that carry its float32 gradients in about as long as they take to compute.
RACE_RATES = (200e6,)
RACE_LOSS = 3.0
RACE_STEPS, RACE_LOOKS, RACE_SEEDS = 120, 24, 3  # steps at most


def trained_by(outcome: Outcome) -> list[dict[str, Any]]:
    """By seed, the first worker's."""
    first, *others = [result["trained"] for result in outcome.results]
    if any(a["digest"] != b["digest"] for other in others for a, b in zip(first, other)):
        raise JobFailed("the workers' weights differ")
    return list(first)


def _measure(outcome: Outcome) -> Figures:
    trained = trained_by(outcome)
    figures = {}
    *before, last = zip(*(seed["losses"] for seed in trained))
    for part, losses in enumerate(before, 1):
        after = f"loss after {part} of {len(before) + 1}"
        figures[after] = Figure(statistics.fmean(losses), "")
    right = [seed["right"] for seed in trained]
    figures["loss"] = Figure(statistics.fmean(last), "")
    figures["loss, spread"] = Figure(statistics.stdev(last), "")
    figures["right"] = Figure(100 * statistics.fmean(right), "%")
    figures["right, spread"] = Figure(100 * statistics.stdev(right), "%")
    return figures


def _reached_s(seed: dict[str, Any]) -> float:
    """How long it trained until the loss that is wanted, between two looks by a straight line."""
    before_s, before = 0.0, math.inf
    for at_s, loss in zip(seed["seconds"], seed["losses"]):
        if loss <= RACE_LOSS:
            part = (before - RACE_LOSS) / (before - loss) if before < math.inf else 1.0
            return float(before_s + part * (at_s - before_s))
        before_s, before = at_s, loss
    raise JobFailed(f"a loss of {RACE_LOSS:g} was not reached; it came to {before:.3f}")


def _race(outcome: Outcome) -> Figures:
    trained = trained_by(outcome)
    reached = [_reached_s(seed) for seed in trained]
    every = RACE_STEPS // RACE_LOOKS
    steps = [seed["seconds"][-1] / (every * len(seed["losses"])) for seed in trained]
    return {
        f"time to a loss of {RACE_LOSS:g}": Figure(statistics.fmean(reached), "s"),
        "spread": Figure(statistics.stdev(reached), "s"),
        "steps": Figure(statistics.fmean(r / s for r, s in zip(reached, steps)), ""),
        "time of a step": Figure(statistics.fmean(steps), "s"),
    }


def _by_backend(system: System) -> list[System]:
    """DDP with PowerSGD's hook, its sums made by our backend: in one bucket, as over Gloo, and in
    several, which do not overtake each other here."""
    hooks = {name: env for name, env in HOOKS.items() if "powersgd" in name}
    ours = {"LAB_BACKEND": "mercury", **SOONER}
    return [
        system.variant(f"{name} in buckets of {size} MB", **{**env, **ours, "LAB_BUCKET_MB": size})
        for name, env in hooks.items()
        for size in ("1024", "5")
    ]


def _ways(system: System, model: str, race: bool = False) -> list[System]:
    if system.ours:
        words = [system.variant(word, LAB_WIRE=word) for word in WORDS]
        return [*words, *_by_backend(system)] if race and model == HOOKED else words
    if model != HOOKED:
        return []
    ways = [system.variant(name, **env) for name, env in HOOKS.items()]
    if not race:
        return ways
    # All of its ways with as many connections as help it, and smaller buckets where it has some.
    many = [replace(way, env={**way.env, "LAB_CONNECTIONS": CONNECTIONS}) for way in ways]
    sooner = [way.variant("sooner", **SOONER) for way in many if "powersgd" in way.name]
    return [*many, *sooner, *with_sizes(many[0])[1:]]


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
                cases.append(replace(case, env=_env(model, SEEDS, LOOKS), timeout_s=3600))
    return cases if length == "quick" else [*cases, *_races(systems)]


def _env(model: str, seeds: int, looks: int) -> dict[str, str]:
    return {"LAB_TASK": model, "LAB_SEEDS": str(seeds), "LAB_LOOKS": str(looks)}


def _races(systems: Sequence[System]) -> list[Case]:
    config = Config("train", {"count": 1, "bytes": 4}, rounds=RACE_STEPS)
    what = f"{HOOKED}, to a loss of {RACE_LOSS:g}, {RACE_SEEDS} seeds"
    env = {**_env(HOOKED, RACE_SEEDS, RACE_LOOKS), "LAB_UNTIL": str(RACE_LOSS), "LAB_TESTED": "100"}
    return [
        Case(
            *("accuracy", what, replace(way, program=WORKER), Setting(rate=rate, beside=True)),
            *(config, _race, 2 * STEP_S * RACE_STEPS * RACE_SEEDS),
            env=env,
            timeout_s=3600,
        )
        for rate in RACE_RATES
        for system in systems
        for way in _ways(system, HOOKED, race=True)
    ]
