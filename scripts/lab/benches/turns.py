"""PyTorch on one machine: two workers train a model wrapped and with DDP, by turns.

Links cost nothing there, so nothing can be gained: what is done for each parameter shows.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace

from scripts.lab.benches.case import Case, Figure, Figures, Setting
from scripts.lab.systems.job import Outcome
from scripts.lab.systems.system import System
from scripts.lab.workloads.job_config import Config

PROGRAM = ("-m", "scripts.lab.systems.torch_by_turns")
# Its models, which can only be made where torch is.
MODELS = (
    "500 matrices of 16 x 16",
    "2000 vectors of 8",
    "1000 layers of 8, each with a bias",
    "100 matrices of 64 x 64",
    "a transformer of 14.7 MB",
    "a perceptron of three layers",
    "an embedding of 128 MB",
)
SETTING = Setting(2, 1, rate=None, loopback=True, beside=True)


def _measured(outcome: Outcome) -> Figures:
    result = outcome.results[0]
    both = list(zip(result["times_s"], result["ddp_s"]))
    return {
        "time / DDP's": Figure(statistics.median(ours / ddp for ours, ddp in both), ""),
        "time": Figure(statistics.median(result["times_s"]), "s"),
        "DDP's time": Figure(statistics.median(result["ddp_s"]), "s"),
    }


def turns(systems: Sequence[System], count: int) -> list[Case]:
    config = Config("train", {"count": 1, "bytes": 4}, rounds=count)
    return [
        Case(
            "turns",
            f"a step of {model}",
            replace(system, program=PROGRAM),
            SETTING,
            config,
            _measured,
            10.0 + 1.5 * count,
            env={"LAB_MODEL": model},
        )
        for model in MODELS
        for system in systems
    ]
