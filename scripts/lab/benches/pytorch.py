"""PyTorch's ways to train on several hosts: ours, and DDP over Gloo with buckets of several sizes.

Servers live beside the workers, so that links carry what a ring's do, and ours once more with
servers on hosts of their own. DDP's next forward pass waits for all gradients, so what it loses
depends on the computation: there are two amounts. On one machine's loopback there is nothing to
gain, only to lose. And a real transformer, which the processor computes, since the others'
computation is emulated. With one worker, `wrap` is to cost next to nothing.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from dataclasses import replace

from scripts.lab.benches import scaling
from scripts.lab.benches.case import Case, Figure, Figures, Setting
from scripts.lab.benches.speed import RATIOS, SCALES
from scripts.lab.systems.job import JobFailed, Outcome
from scripts.lab.systems.system import DDP, System
from scripts.lab.workloads.job_config import Config

BUCKETS_MB = (1, 5)  # beside DDP's own 25
REAL = Setting(2, 2, 250e6, beside=True)
TRANSFORMER_BYTES = 14_688_160
ALONE = Setting(1, 1, rate=None, loopback=True, beside=True)
OVERHEAD = ("-m", "scripts.lab.systems.torch_overhead")
OVERHEAD_OF = {"transformer": 200, "cnn": 500}  # so many steps
LOOPBACK = Setting(2, 1, rate=None, loopback=True, beside=True)
# BERT-Base's gradients and computation take equally long at about 0.8: its embedding's gradient
# comes last, and is waited for first. The other models' do at 1.
PART_OF_RING = 0.9
EXCHANGES = 100  # a median of three, each of a tenth of a second, would be of little worth


def computations(setting: Setting) -> list[float]:
    """Seconds of computation by second of a link one way.

    Little of it; and about as much as links are busy, by what a ring of so many hosts sends, so
    that the amount means the same for each.
    """
    return [RATIOS["network-bound"], PART_OF_RING * setting.load(servers=False)]


def with_sizes(ddp: System) -> list[System]:
    """DDP again with buckets of other sizes: the best counts."""
    return [ddp, *(ddp.variant(f"{mb} MB", LAB_BUCKET_MB=str(mb)) for mb in BUCKETS_MB)]


def with_buckets(systems: Sequence[System]) -> list[System]:
    return [made for s in systems for made in (with_sizes(s) if s.name == DDP else [s])]


def _on_loopback(system: System, model: str, scale: float, rounds: int) -> Case:
    config = Config("train", {"model": model, "scale": scale, "compute_s": 0.0}, rounds=rounds)

    def measure(outcome: Outcome) -> Figures:
        took = statistics.median(outcome.rounds_s)
        spent = sum(outcome.worker_cpu_s())
        spent += sum(outcome.cpu_s("server")) if system.servers else 0.0
        return {
            "time": Figure(took, "s"),
            "processor time, all": Figure(spent / config.rounds, "s"),
        }

    what = f"{model} x {scale:.3g}, no computation"
    return Case("torch", what, system, LOOPBACK, config, measure, 0.1 * rounds)


def _real(system: System, rounds: int) -> Case:
    # As many bytes as torch_transformer.py has; what is computed, torch decides.
    config = Config("train", {"count": 1, "bytes": TRANSFORMER_BYTES}, rounds=rounds)

    def measure(outcome: Outcome) -> Figures:
        if len({result["digest"] for result in outcome.results}) > 1:
            raise JobFailed(f"{system.name}: the workers' weights differ")
        sent = max(sent for sent, _ in outcome.wire_bytes()) / config.rounds
        return {
            "time": Figure(statistics.median(outcome.rounds_s), "s"),
            "processor time, worker": Figure(max(outcome.worker_cpu_s()) / config.rounds, "s"),
            "sent by a worker's host": Figure(sent / 1e6, "MB"),
        }

    what = "a transformer of 14.7 MB, computed by the processor"
    env = {"LAB_TRANSFORMER": "1"}
    return Case("torch", what, system, REAL, config, measure, 1.0 * rounds, env=env)


def _overhead(system: System, model: str) -> Case:
    config = Config("train", {"count": 1, "bytes": 4}, rounds=OVERHEAD_OF[model], warmup=10)

    def measure(outcome: Outcome) -> Figures:
        (result,) = outcome.results
        took, plain = (statistics.median(result[name]) for name in ("times_s", "plain_s"))
        return {
            "time / plain torch": Figure(took / plain, ""),
            "time": Figure(took, "s"),
            "time of plain torch": Figure(plain, "s"),
        }

    alone = replace(system, program=OVERHEAD)
    what = f"a {model} that one worker trains, wrapped and plain by turns"
    return Case("torch", what, alone, ALONE, config, measure, 30.0, env={"LAB_MODEL": model})


def pytorch(
    systems: Sequence[System], asked: scaling.Asked, rounds: int, length: str = "usual"
) -> list[Case]:
    quick = length == "quick"
    systems = with_buckets(systems)
    models = asked.models or (scaling.MODELS[:1] if quick else scaling.MODELS)
    nodes = asked.nodes or (scaling.NODES[:1] if quick else scaling.NODES)
    share = scaling.SHARE * (scaling.QUICK if quick else 1.0)
    cases = []
    for beside in (True,) if asked.colocate or quick else (True, False):
        here = [s for s in systems if s.servers or beside]
        for setting in scaling.settings(nodes, asked.rate, scaling.RATES[:1], beside):
            amounts = computations(setting)[: None if beside and not quick else 1]
            for model, ratio in itertools.product(models, amounts):
                scale = asked.scale or SCALES[model] * share
                cases += scaling.training(here, model, scale, setting, rounds, ratio=ratio)
    cases = [replace(case, bench="torch") for case in cases]
    for model in models:
        scale = asked.scale or SCALES[model] * scaling.SHARE
        exchanges = rounds if quick else EXCHANGES
        cases += [_on_loopback(system, model, scale, exchanges) for system in systems]
    cases += [_real(system, rounds) for system in systems]
    ours = [system for system in systems if system.ours]
    return cases + [_overhead(system, model) for system in ours for model in OVERHEAD_OF]
