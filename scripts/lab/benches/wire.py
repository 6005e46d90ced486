"""Gradients as fewer bytes: ours as bf16 and int8, under MXNet and PyTorch; DDP with its bf16 hook.

The floor is that of the bytes that a codec leaves. float32 is measured beside them. DDP has four
connections, and the best of three bucket sizes counts. Once, four workers share each host.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from dataclasses import replace

from scripts.lab.benches import scaling
from scripts.lab.benches.case import Case, Figure, Figures, Setting
from scripts.lab.benches.prediction import floor_s
from scripts.lab.benches.pytorch import with_sizes
from scripts.lab.benches.speed import RATIOS, SCALES
from scripts.lab.systems.job import Outcome
from scripts.lab.systems.system import DDP, System
from scripts.lab.workloads.job_config import Config, workload_of

NODES = ((2, 2), (4, 4))
RATES = (1.0, 2.0)  # of a host's part of all links together
SHARE = 0.61  # of the scales in speed.py: 67 MB as float32 on each link
QUICK = 0.15  # of that
HOSTS = Setting(8, 2, 100e6, beside=True, per_host=4)
CONNECTIONS = "4"
WIRES = ("bf16", "int8")


def _ways(system: System) -> list[tuple[System, str]]:
    """It in all of its ways, each with the word for what it sends."""
    if system.name == DDP:
        many = with_sizes(replace(system, env={**system.env, "LAB_CONNECTIONS": CONNECTIONS}))
        return [(s.variant("bf16", LAB_HOOK="bf16", LAB_ROUNDED="1"), "bf16") for s in many]
    made = [(system, "float32")]
    for word in WIRES:
        made.append((system.variant(word, MERCURY_WIRE=word, LAB_ROUNDED="1"), word))
    return made


def _case(what: str, system: System, word: str, setting: Setting, config: Config) -> Case:
    job = workload_of(config.tensors).job().on_wire(word)
    floor = floor_s(job, setting.bandwidth / setting.load(system.servers))

    def measure(outcome: Outcome) -> Figures:
        took = statistics.median(outcome.rounds_s)
        spent = max(outcome.worker_cpu_s()) / config.rounds
        sent = max(sent for sent, _ in outcome.wire_bytes()) / config.rounds
        figures = {
            "time": Figure(took, "s"),
            "ratio to floor": Figure(took / floor, ""),
            "floor": Figure(floor, "s"),
            "processor time, worker": Figure(spent, "s"),
            "sent by a worker's host": Figure(sent / 1e6, "MB"),
        }
        if system.servers:
            spent = max(outcome.cpu_s("server")) / config.rounds
            figures["processor time, server"] = Figure(spent, "s")
        return figures

    seconds = (config.rounds + config.warmup) * 1.5 * floor
    return Case("wire", what, system, setting, config, measure, seconds)


def wire(
    systems: Sequence[System], asked: scaling.Asked, rounds: int, length: str = "usual"
) -> list[Case]:
    quick = length == "quick"
    ways = [way for system in systems for way in _ways(system)]
    models = asked.models or (scaling.MODELS[:1] if quick else scaling.MODELS)
    nodes = asked.nodes or (NODES[:1] if quick else NODES)
    share = SHARE * (QUICK if quick else 1.0)
    settings: list[Setting] = []
    for beside in (True,) if asked.colocate or quick else (True, False):
        rates = RATES[:1] if quick or not beside else RATES
        settings += scaling.settings(nodes, asked.rate, rates, beside)
    if not (quick or asked.nodes or asked.rate):
        settings.append(HOSTS)
    cases = []
    for setting, model in itertools.product(settings, models):
        if setting is HOSTS and model != models[0]:
            continue
        shape = {"model": model, "scale": asked.scale or SCALES[model] * share}
        # As little computation beside what bf16 sends as there is beside float32 elsewhere.
        link_s = setting.link_s(workload_of(shape).bytes) / 2
        compute_s = round(RATIOS["network-bound"] * link_s, 3)
        config = Config("train", {**shape, "compute_s": compute_s}, rounds=rounds)
        what = f"{model} x {shape['scale']:.3g}, {compute_s:g} s of computation"
        here = [way for way in ways if way[0].servers or setting.beside]
        cases += [_case(what, system, word, setting, config) for system, word in here]
    return cases
