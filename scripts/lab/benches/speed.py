"""How long iterations take, and pure communication, against the least that any schedule needs."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from pslite_ext.forecast.model import Job
from scripts.lab.benches.case import USUAL, Case, Figure, Figures, Setting
from scripts.lab.benches.prediction import floor_s, predicted_s
from scripts.lab.systems.job import Outcome
from scripts.lab.systems.system import System
from scripts.lab.workloads.job_config import Config, workload_of
from scripts.lab.workloads.workload import load

# Scaled so that one iteration sends 111 and 102 MB: about a second at 1 Gbit/s.
SENT_BYTES = 110e6
SCALES = {"vgg16": 0.2, "resnet50": 1.0, "bert_base": 0.25, "alexnet": 0.45, "inception_v3": 1.0}
# Seconds of computation by second of communication (all bytes, one way). 1.34 is VGG-16 on the
# GPUs and links it was published with: 0.58 s of computation, 540 MB at 10 Gbit/s.
RATIOS = {"network-bound": 0.6, "as published": 1.34}


def case(
    bench: str,
    what: str,
    system: System,
    setting: Setting,
    config: Config,
    each_s: float,
    job: Job | None = None,
) -> Case:
    """`job`: what the model is told, if that is not what the worker computes with."""
    job = job or workload_of(config.tensors).job()
    floor = floor_s(job, setting.bandwidth)
    predicted = predicted_s(job, setting.bandwidth, system.name)

    def measure(outcome: Outcome) -> Figures:
        took = statistics.median(outcome.rounds_s)
        foretold: Figures = {}
        if predicted is not None:
            foretold["predicted time"] = Figure(predicted, "s")
            foretold["predicted / measured"] = Figure(predicted / took, "")
        return {
            "time": Figure(took, "s"),
            "ratio to floor": Figure(took / floor, ""),
            "floor": Figure(floor, "s"),
            **foretold,
            "processor time, worker": Figure(max(outcome.worker_cpu_s()) / config.rounds, "s"),
            "processor time, server": Figure(max(outcome.cpu_s("server")) / config.rounds, "s"),
            "sent by a worker": Figure(
                max(sent for sent, _ in outcome.wire_bytes()) / config.rounds / 1e6, "MB"
            ),
        }

    seconds = (config.rounds + config.warmup) * each_s
    return Case(bench, what, system, setting, config, measure, seconds)


def iteration(
    systems: Sequence[System],
    models: Sequence[str],
    ratios: Sequence[str],
    rounds: int,
    setting: Setting = USUAL,
) -> list[Case]:
    cases = []
    for model in models:
        for ratio in ratios:
            shape = {"model": model, "scale": SCALES[model]}
            link_s = setting.link_s(workload_of(shape).bytes)
            compute_s = round(RATIOS[ratio] * link_s, 3)
            tensors = {**shape, "compute_s": compute_s}
            config = Config("train", tensors, rounds=rounds, sample_s=0.05)
            what = f"{model} x {SCALES[model]:g}, {ratio}: {compute_s:g} s of computation"
            cases += [
                case("iteration", what, s, setting, config, compute_s + 1.5 * link_s)
                for s in systems
            ]
    return cases


def measured(
    systems: Sequence[System], profile: Path, rounds: int, setting: Setting = USUAL
) -> list[Case]:
    """A job file, such as `mercury profile` writes: its own ratio, scaled to what others send."""
    workload = load(str(profile))
    scale = min(1.0, round(SENT_BYTES / workload.bytes, 2))
    config = Config("train", {"model": str(profile), "scale": scale}, rounds=rounds)
    scaled = workload_of(config.tensors)
    each_s = scaled.compute_s + 1.5 * setting.link_s(scaled.bytes)
    what = f"{workload.name} x {scale:g}, as measured: {scaled.compute_s:.3g} s of computation"
    return [case("iteration", what, s, setting, config, each_s) for s in systems]


def communication(
    systems: Sequence[System], models: Sequence[str], rounds: int, setting: Setting = USUAL
) -> list[Case]:
    cases = []
    for model in models:
        config = Config("rounds", {"model": model, "scale": SCALES[model]}, rounds=rounds)
        what = f"push and pull of {model} x {SCALES[model]:g}"
        link_s = setting.link_s(workload_of(config.tensors).bytes)
        cases += [case("communication", what, s, setting, config, 1.8 * link_s) for s in systems]
    return cases
