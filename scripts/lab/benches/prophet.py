"""Prophet beside ByteScheduler, P3, WFBP and Mercury: three workers, one server, poor networks.

The emulated GPU produces gradients in steps, as the paper found them. Rates are shares of the one
at which all bytes of an iteration take as long as its computation.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from dataclasses import replace

from pslite_ext.forecast.model import Job, predict
from scripts.lab.bed.disturbance import Steps
from scripts.lab.benches.case import TCP_SHARE, Case, Figure, Figures, Setting
from scripts.lab.systems.job import Outcome
from scripts.lab.systems.system import System
from scripts.lab.workloads.job_config import Config, workload_of

WORKERS, SERVERS = 3, 1
BALANCED = 1e9  # bits per second of every link: where communication and computation balance
STEPS = {"resnet50": 13, "resnet18": 8}
WARMUP = 2  # iterations of which Prophet needs one to learn from: the emulated GPU is exact
MEASURED_S = 15.0  # about so long, in so many iterations:
FEWEST, MOST = 2, 8
LEARN = {"MERCURY_PROPHET_PROFILE_STEPS": "1"}
# ByteScheduler's partition and credit beside its own choice of 4 and 16 MiB.
TUNED = ((256 << 10, 1 << 20), (1 << 20, 2 << 20))
# What a case of rates() is called; the page has one table of all rates.
RATED = re.compile(r"(?P<model>\S+) in \d+ steps, (?P<share>\S+) of the balanced rate")
CHANGE_S = 25.0
ADAPTED = 0.15  # of the rate that it should be


def with_variants(systems: Sequence[System]) -> list[System]:
    """Prophet both ways, each beside what else that way has; bytescheduler as it is and tuned."""
    chosen = []
    for system in systems:
        if system.name == "zmq":
            chosen += [system, system.variant("prophet", MERCURY_POLICY="prophet")]
        elif system.name.startswith("mercury-") and system.name != "mercury-fifo":
            chosen.append(system)
        if system.name == "mercury-bytescheduler":
            for partition, credit in TUNED:
                sizes = {"PARTITION": partition, "CREDIT": credit}
                env = {f"MERCURY_{name}_BYTES": str(size) for name, size in sizes.items()}
                name = f"{partition >> 10}/{credit >> 10} KiB"
                chosen.append(system.variant(name, **env))
    return chosen


def _learning(systems: Sequence[System]) -> list[System]:
    """The bench itself says what Prophet learns from, and counts every iteration."""
    return [replace(system, warmup=0) for system in systems]


def _at_best_s(job: Job, bandwidth: float) -> float:
    return predict(job, bandwidth, "mercury", workers=WORKERS, servers=SERVERS).iteration_s


def foretold_s(job: Job, bandwidth: float, system: System) -> float | None:
    """By the model; nothing is fitted, so there are neither latencies nor startup times.

    None: the model does not describe this system.
    """
    if system.name == "zmq":
        return None
    policy = system.name.split()[0].partition("-")[2] or "prophet"
    options: dict[str, object] = {"workers": WORKERS, "servers": SERVERS}
    if system.name.startswith("zmq"):
        options["partition_bytes"] = float(job.bytes.max())  # whole gradients
    elif policy == "bytescheduler":
        options["partition_bytes"] = int(system.env.get("MERCURY_PARTITION_BYTES", 4 << 20))
        options["credit_bytes"] = int(system.env.get("MERCURY_CREDIT_BYTES", 16 << 20))
    elif policy == "wfbp":
        options["serial_pull"] = True
    return predict(job, bandwidth, policy, **options).iteration_s


def _shape(model: str, scale: float = 1.0) -> dict[str, object]:
    """With as much computation as there is communication at the balanced rate."""
    sent = workload_of({"model": model, "scale": scale}).bytes
    balance_s = sent * 8 * WORKERS / SERVERS / (BALANCED * TCP_SHARE)
    return {"model": model, "scale": scale, "compute_s": round(balance_s, 3), "steps": STEPS[model]}


def rates(systems: Sequence[System], models: Sequence[str], shares: Sequence[float]) -> list[Case]:
    cases = []
    for model in models:
        shape = _shape(model)
        job = workload_of(shape).job()
        for share in shares:
            setting = Setting(WORKERS, SERVERS, share * BALANCED)
            about_s = 1.2 * _at_best_s(job, setting.bandwidth)
            rounds = min(max(FEWEST, round(MEASURED_S / about_s)), MOST)
            config = Config("train", shape, rounds=rounds, warmup=WARMUP)
            for system in _learning(systems):
                foretold = foretold_s(job, setting.bandwidth, system)

                def measure(outcome: Outcome, foretold: float | None = foretold) -> Figures:
                    took = statistics.median(outcome.rounds_s)
                    figures: Figures = {"time": Figure(took, "s")}
                    if foretold is not None:
                        figures["predicted time"] = Figure(foretold, "s")
                        figures["predicted / measured"] = Figure(foretold / took, "")
                    return figures

                what = f"{model} in {STEPS[model]} steps, {share:g} of the balanced rate"
                seconds = (rounds + WARMUP) * about_s
                case = Case("prophet", what, system, setting, config, measure, seconds, LEARN)
                cases.append(replace(case, timeout_s=120 + 4 * seconds))
    return cases


def changing_rate(systems: Sequence[System]) -> list[Case]:
    """The rate halves and recovers: how soon the blocks are made for the new one."""
    setting = Setting(WORKERS, SERVERS, BALANCED / 2)
    full, half = BALANCED / 2, BALANCED / 4
    shape = _shape("resnet18", 0.25)
    each_s = 1.3 * _at_best_s(workload_of(shape).job(), setting.bandwidth)
    rounds = round(3 * CHANGE_S / each_s)
    config = Config("train", shape, rounds=rounds, warmup=WARMUP, sample_s=0.25, blocks_s=0.5)
    cases = []
    for system in _learning(systems):
        disturbance = Steps((full, half), CHANGE_S)

        def measure(outcome: Outcome, disturbance: Steps = disturbance) -> Figures:
            seen = outcome.blocks()
            end = outcome.workers[0]["end"]["t"]
            figures: Figures = {}
            for (at, rate), way in zip(disturbance.changes[1:], ("halved", "recovered")):
                due = rate / 8 * TCP_SHARE / WORKERS
                fits = [t - at for t, now, _ in seen if t > at and abs(now / due - 1) <= ADAPTED]
                figures[f"blocks follow, {way}"] = Figure(fits[0] if fits else end - at, "s")
                sizes = [size for t, _, size in seen if at + CHANGE_S / 2 < t < at + CHANGE_S]
                if sizes:
                    figures[f"mean block, {way}"] = Figure(statistics.mean(sizes) / 1e3, "kB")
            return figures

        what = f"resnet18 x 0.25, {full / 1e6:g} and {half / 1e6:g} Mbit/s in turn"
        seconds = 3.2 * CHANGE_S
        case = Case("prophet", what, system, setting, config, measure, seconds, LEARN)
        cases.append(replace(case, disturbance=disturbance))
    return cases


def first_iterations(systems: Sequence[System], rounds: int = 50) -> list[Case]:
    """While Prophet learns with its defaults: is it slower than the policy that it then is?"""
    setting = Setting(WORKERS, SERVERS, BALANCED / 2)
    config = Config("train", _shape("resnet18", 0.1), rounds=rounds)

    def measure(outcome: Outcome) -> Figures:
        return {
            "time": Figure(statistics.mean(outcome.rounds_s), "s"),
            "processor time, worker": Figure(max(outcome.worker_cpu_s()) / rounds, "s"),
        }

    what = f"the first {rounds} iterations of resnet18 x 0.1"
    usual = {"MERCURY_PROPHET_PROFILE_STEPS": "50"}
    return [
        Case("prophet", what, s, setting, config, measure, 0.6 * rounds, usual)
        for s in _learning(systems)
    ]
