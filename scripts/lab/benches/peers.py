"""All systems side by side, those of others that need no servers too, against the floor of each.

A ring of n workers sends 2 (n - 1) / n of the bytes that a worker sends to servers, so its floor
is another: the same for two workers, higher for more.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace

from scripts.lab.bed.disturbance import slow_link
from scripts.lab.benches.case import USUAL, Case, Figure, Figures, Setting
from scripts.lab.benches.prediction import floor_s
from scripts.lab.benches.speed import RATIOS, SCALES
from scripts.lab.systems.job import Outcome
from scripts.lab.systems.system import DDP, MERCURY, System
from scripts.lab.workloads.job_config import Config, workload_of

SHARE = 0.5  # of the scales in speed.py: there are many cases, and half a second shows the same
MODELS = ("vgg16", "resnet50", "bert_base")
SLOWER = 0.5  # of the rate, on one worker's link: all wait for its part of the sums
SAMPLED = "vgg16"  # whose throughput over time is noted, of these:
SAMPLED_SYSTEMS = ("stock", "stock-p3", MERCURY, "horovod", DDP, "mpi")
SAMPLE_S = 0.05


def peers_floor_s(config: Config, setting: Setting, slower: float, servers: bool) -> float:
    """The least that any schedule needs over links of `slower` times the setting's rate."""
    bandwidth = setting.bandwidth * slower / setting.load(servers)
    return floor_s(workload_of(config.tensors).job(), bandwidth)


def _case(what: str, system: System, setting: Setting, config: Config, slower: float) -> Case:
    floor = peers_floor_s(config, setting, slower, system.servers)

    def measure(outcome: Outcome) -> Figures:
        took = statistics.median(outcome.rounds_s)
        sent = max(sent for sent, _ in outcome.wire_bytes())
        figures = {
            "time": Figure(took, "s"),
            "ratio to floor": Figure(took / floor, ""),
            "floor": Figure(floor, "s"),
            "start-up": Figure(outcome.startup_s, "s"),
            "processor time, worker": Figure(max(outcome.worker_cpu_s()) / config.rounds, "s"),
            "memory, worker": Figure(outcome.peak_kb("worker") / 1024, "MiB"),
            "sent by a worker": Figure(sent / config.rounds / 1e6, "MB"),
        }
        if system.servers:
            spent = max(outcome.cpu_s("server")) / config.rounds
            figures["processor time, server"] = Figure(spent, "s")
            figures["memory, server"] = Figure(outcome.peak_kb("server") / 1024, "MiB")
        return figures

    disturbance = (
        slow_link("worker0", setting.rate * slower) if slower < 1 and setting.rate else None
    )
    seconds = (config.rounds + config.warmup) * 1.7 * floor
    return Case("peers", what, system, setting, config, measure, seconds, disturbance=disturbance)


def peers(
    systems: Sequence[System],
    models: Sequence[str] = MODELS,
    worlds: Sequence[float] = (1.0, SLOWER),
    rounds: int = 6,
    setting: Setting = USUAL,
) -> list[Case]:
    cases = []
    for model in models:
        shape = {"model": model, "scale": SCALES[model] * SHARE}
        compute_s = round(RATIOS["network-bound"] * setting.link_s(workload_of(shape).bytes), 3)
        plain = Config("train", {**shape, "compute_s": compute_s}, rounds=rounds)
        sampled = replace(plain, sample_s=SAMPLE_S)
        for slower in worlds:
            link = "static" if slower == 1 else f"one worker's link at {slower:g} of the rate"
            what = f"{model} x {shape['scale']:g}, {compute_s:g} s of computation, {link}"
            for system in systems:
                drawn = model == SAMPLED and system.name in SAMPLED_SYSTEMS
                cases.append(_case(what, system, setting, sampled if drawn else plain, slower))
    return cases
