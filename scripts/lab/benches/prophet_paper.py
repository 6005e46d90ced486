"""Prophet's evaluation as it was published, on links of a tenth of its rates.

Three workers and one server; a tenth of each model, so that all takes as long as it took there. The
computation is that of the paper's own figure for a worker that never waits.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace

from pslite_ext.forecast.model.papers import BATCH, GBIT, SAMPLES_PER_S
from scripts.lab.benches.case import Case, Figure, Figures, Setting
from scripts.lab.benches.mercury_paper import with_tuned
from scripts.lab.benches.prediction import floor_s
from scripts.lab.benches.prophet import LEARN, SERVERS, STEPS, WARMUP, WORKERS, foretold_s
from scripts.lab.systems.job import Outcome
from scripts.lab.systems.system import System
from scripts.lab.workloads.job_config import Config, workload_of

PART = 0.1  # of the rates, and of the models
MEASURED_S = 6.0
USUAL_GBIT = 3.0  # where its gain is greatest
OTHERS = ("resnet18", "resnet152", "inception_v3")
GROUPS = {**STEPS, "resnet152": 13, "inception_v3": 13}
BATCHES = (16, 32)
NODES = ((2, 2), (4, 4), (8, 8))  # of Fig. 12, with as many servers as workers
NODES_GBIT = 1.0


def tensors_of(model: str, batch: int = BATCH) -> dict[str, object]:
    """As the paper's workers computed ResNet-50; others by their number of operations."""
    seconds = BATCH / SAMPLES_PER_S * workload_of({"model": model}).compute_s
    seconds *= batch / BATCH / workload_of({"model": "resnet50"}).compute_s
    return {
        "model": model,
        "scale": PART,
        "compute_s": round(seconds, 4),
        "steps": GROUPS[model],
    }


def _cases(
    what: str, systems: Sequence[System], setting: Setting, tensors: dict[str, object], batch: int
) -> list[Case]:
    job = workload_of(tensors).job()
    floor = floor_s(job, setting.bandwidth / setting.load())
    about_s = 1.2 * floor
    rounds = min(max(2, round(MEASURED_S / about_s)), 6)
    config = Config("train", tensors, rounds=rounds, warmup=WARMUP)
    cases = []
    for system in (replace(system, warmup=0) for system in systems):
        three = (setting.workers, setting.servers) == (WORKERS, SERVERS)
        ours = three and not system.name.startswith("stock")
        foretold = foretold_s(job, setting.bandwidth, system) if ours else None

        def measure(outcome: Outcome, foretold: float | None = foretold) -> Figures:
            took = statistics.median(outcome.rounds_s)
            figures: Figures = {
                "time": Figure(took, "s"),
                "samples a second and worker": Figure(batch / took, ""),
                "computation / time": Figure(job.compute_s / took, ""),
                "ratio to floor": Figure(took / floor, ""),
            }
            if foretold is not None:
                figures["predicted / measured"] = Figure(foretold / took, "")
            return figures

        seconds = (rounds + WARMUP) * about_s
        case = Case("prophet_paper", what, system, setting, config, measure, seconds, LEARN)
        cases.append(replace(case, timeout_s=120 + 4 * seconds))
    return cases


def _at(gbit: float, nodes: tuple[int, int] = (WORKERS, SERVERS)) -> Setting:
    return Setting(*nodes, PART * gbit * 1e9)


def prophet_paper(systems: Sequence[System], length: str) -> list[Case]:
    chosen = with_tuned(systems)
    cases = []
    for gbit in (USUAL_GBIT,) if length == "quick" else GBIT:
        what = f"Table 2, resnet50 as at {gbit:g} Gbit/s"
        cases += _cases(what, chosen, _at(gbit), tensors_of("resnet50"), BATCH)
    if length == "quick":
        return cases
    for batch in BATCHES:
        what = f"Table 3, resnet50, batches of {batch}, as at {USUAL_GBIT:g} Gbit/s"
        cases += _cases(what, chosen, _at(USUAL_GBIT), tensors_of("resnet50", batch), batch)
    for model in OTHERS:
        what = f"Fig. 8, {model} as at {USUAL_GBIT:g} Gbit/s"
        cases += _cases(what, chosen, _at(USUAL_GBIT), tensors_of(model), BATCH)
    prophets = [s for s in systems if s.name == "mercury-prophet"]
    for nodes in NODES:
        what = f"Fig. 12, resnet50 as at {NODES_GBIT:g} Gbit/s"
        cases += _cases(what, prophets, _at(NODES_GBIT, nodes), tensors_of("resnet50"), BATCH)
    return cases
