"""Prophet's evaluation as it was published, on links of a tenth of its rates; and what it costs.

Three workers and one server; a tenth of each model, so that all takes as long as it took there. The
computation is that of the paper's own figure for a worker that never waits. The emulated GPU
produces gradients in steps, as the paper found them.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pslite_ext.forecast.model import Job, predict
from pslite_ext.forecast.model.options import Options
from pslite_ext.forecast.model.papers import BATCH, GBIT, SAMPLES_PER_S
from pslite_ext.forecast.simulate import Cluster, SimulatedJob, simulate
from scripts.lab.bed.disturbance import Steps, slow_link
from scripts.lab.benches.case import TCP_SHARE, Case, Figure, Figures, Setting
from scripts.lab.benches.mercury_paper import with_tuned
from scripts.lab.benches.prediction import LATENCY_S, floor_s
from scripts.lab.systems.job import Outcome
from scripts.lab.systems.system import MERCURY, System
from scripts.lab.workloads.job_config import Config, workload_of

WORKERS, SERVERS = 3, 1
PART = 0.1  # of the paper's rates, and of the models
STEPS = {"resnet50": 13, "resnet152": 13, "inception_v3": 13, "resnet18": 8}
WARMUP = 2  # iterations of which Prophet needs one to learn from: the emulated GPU is exact
SETTLED_S = 8.0  # until it knows what its links carry, which it looks at once a second
MEASURED_S = 6.0  # about so long, in so many iterations:
FEWEST, MOST = 2, 6
LEARN = {"MERCURY_PROPHET_PROFILE_STEPS": "1"}
BEST_GBIT = 3.0  # where the paper's gain is greatest
OTHERS = ("resnet18", "resnet152", "inception_v3")
BATCHES = (16, 32)
NODES = ((2, 2), (4, 4), (8, 8))  # of Fig. 12, with as many servers as workers
NODES_GBIT = 1.0
# P3's slices, in elements; the first is its own. A model here has a tenth of the paper's elements.
SLICES = (40_000, 160_000, 640_000, 2_560_000)
SLOW_GBIT = 0.5  # of one worker
EVEN, UNEVEN = (1 / 3, 1 / 3, 1 / 3), (0.30, 1 / 3, 1 - 0.30 - 1 / 3)
CHANGE_S = 25.0
CHANGING = (500e6, 250e6)
ADAPTED = 0.15  # of the rate that it should be


def foretold_s(job: Job, bandwidth: float, system: System) -> float | None:
    """By the model; nothing is fitted, so there are neither latencies nor startup times.

    None: the model does not describe this system.
    """
    if system.name == "zmq" or system.name.startswith("stock"):
        return None
    policy = system.name.split()[0].partition("-")[2] or "prophet"
    options: dict[str, object] = {"workers": WORKERS, "servers": SERVERS}
    if system.name.startswith("zmq"):
        options["partition_bytes"] = float(job.bytes.max())  # whole gradients
    elif policy == "bytescheduler":
        options.update(_sizes(system))
    elif policy == "wfbp":
        options["serial_pull"] = True
    return predict(job, bandwidth, policy, **options).iteration_s


def _sizes(system: System) -> dict[str, object]:
    """ByteScheduler's own, or those that it is given."""
    return {
        "partition_bytes": int(system.env.get("MERCURY_PARTITION_BYTES", 4 << 20)),
        "credit_bytes": int(system.env.get("MERCURY_CREDIT_BYTES", 16 << 20)),
    }


def tensors_of(model: str, batch: int = BATCH) -> dict[str, object]:
    """As the paper's workers computed ResNet-50; others by their number of operations."""
    this, resnet50 = (workload_of({"model": name}).compute_s for name in (model, "resnet50"))
    seconds = batch / SAMPLES_PER_S * this / resnet50
    return {
        "model": model,
        "scale": PART,
        "compute_s": round(seconds, 4),
        "steps": STEPS[model],
    }


def _cases(
    what: str,
    systems: Sequence[System],
    gbit: float,
    tensors: dict[str, object],
    batch: int = BATCH,
    nodes: tuple[int, int] = (WORKERS, SERVERS),
    slowest_gbit: float | None = None,
) -> list[Case]:
    """`slowest_gbit`: of the first worker's link."""
    setting = Setting(*nodes, PART * gbit * 1e9)
    job = workload_of(tensors).job()
    busiest, slow = setting.bandwidth / setting.load(), None
    if slowest_gbit is not None:
        busiest = min(busiest, setting.bandwidth * slowest_gbit / gbit)
        slow = slow_link("worker0", PART * slowest_gbit * 1e9)
    floor = floor_s(job, busiest)
    rounds = min(max(FEWEST, round(MEASURED_S / (1.2 * floor))), MOST)
    config = Config("train", tensors, rounds=rounds, warmup=WARMUP)
    cases = []
    for system in _learning(systems, math.ceil(SETTLED_S / floor)):
        usual = nodes == (WORKERS, SERVERS) and slow is None
        foretold = foretold_s(job, setting.bandwidth, system) if usual else None

        def measure(outcome: Outcome, foretold: float | None = foretold) -> Figures:
            took = statistics.median(outcome.rounds_s)
            figures: Figures = {
                "time": Figure(took, "s"),
                "samples a second and worker": Figure(batch / took, ""),
                "computation / time": Figure(job.compute_s / took, ""),
                "ratio to floor": Figure(took / floor, ""),
                "from a gradient to its sum": Figure(1e3 * _to_sums_s(outcome), "ms"),
            }
            if foretold is not None:
                figures["predicted / measured"] = Figure(foretold / took, "")
            return figures

        seconds = (rounds + max(WARMUP, system.warmup)) * 1.3 * floor
        case = Case("prophet", what, system, setting, config, measure, seconds, LEARN)
        cases.append(replace(case, timeout_s=120 + 4 * seconds, disturbance=slow))
    return cases


def _to_sums_s(outcome: Outcome) -> float:
    """From when a layer's gradients are there until their sums are: the mean of all layers and
    workers, in the last iteration."""
    layers = (layer for result in outcome.results for layer in result["timeline"])
    return statistics.mean(float(back - ready) for ready, back, _, _ in layers)


def _learning(systems: Sequence[System], warmup: int = 0) -> list[System]:
    """The bench itself says what Prophet learns from, and how long before it is measured."""
    return [replace(s, warmup=warmup if s.warmup else 0) for s in systems]


def rates(systems: Sequence[System], rates_gbit: Sequence[float] = GBIT) -> list[Case]:
    """Table 2."""
    cases = []
    for gbit in rates_gbit:
        what = f"Table 2, resnet50 as at {gbit:g} Gbit/s"
        cases += _cases(what, with_tuned(systems), gbit, tensors_of("resnet50"))
    return cases


def whole(classic: Sequence[System]) -> list[Case]:
    """The paper's own design: whole gradients over the classic path, with and without blocks."""
    systems = [*classic, *(s.variant("prophet", MERCURY_POLICY="prophet") for s in classic)]
    what = f"whole gradients, resnet50 as at {BEST_GBIT:g} Gbit/s"
    return _cases(what, systems, BEST_GBIT, tensors_of("resnet50"))


def batches_and_networks(systems: Sequence[System]) -> list[Case]:
    """Table 3 and Fig. 8."""
    cases = []
    for batch in BATCHES:
        what = f"Table 3, resnet50, batches of {batch}, as at {BEST_GBIT:g} Gbit/s"
        tensors = tensors_of("resnet50", batch)
        cases += _cases(what, with_tuned(systems), BEST_GBIT, tensors, batch)
    for model in OTHERS:
        what = f"Fig. 8, {model} as at {BEST_GBIT:g} Gbit/s"
        cases += _cases(what, with_tuned(systems), BEST_GBIT, tensors_of(model))
    return cases


def slices(p3: Sequence[System]) -> list[Case]:
    """Fig. 3a: P3 by the size of what it sends."""
    sizes = [
        s.variant(f"{count} elements", MXNET_KVSTORE_SLICE_THRESHOLD=str(count))
        for s in p3
        for count in SLICES
    ]
    what = f"Fig. 3a, resnet50 as at {BEST_GBIT:g} Gbit/s"
    return _cases(what, sizes, BEST_GBIT, tensors_of("resnet50"))


def one_slow_link(systems: Sequence[System]) -> list[Case]:
    """One worker at 500 Mbit/s."""
    what = f"one worker as at {SLOW_GBIT:g} Gbit/s, resnet50 as at {BEST_GBIT:g} Gbit/s"
    tensors = tensors_of("resnet50")
    return _cases(what, with_tuned(systems), BEST_GBIT, tensors, slowest_gbit=SLOW_GBIT)


def more_workers(prophets: Sequence[System]) -> list[Case]:
    """Fig. 12."""
    what = f"Fig. 12, resnet50 as at {NODES_GBIT:g} Gbit/s"
    tensors = tensors_of("resnet50")
    return [
        case for nodes in NODES for case in _cases(what, prophets, NODES_GBIT, tensors, nodes=nodes)
    ]


def apart(systems: Sequence[System]) -> list[Case]:
    """Why rivals take longer than the model says: how far one worker is ahead of another, and what
    the simulator makes of connections that share the server's link unevenly."""
    gbit = GBIT[0]
    tensors = tensors_of("resnet50")
    job = workload_of(tensors).job()
    what = f"how far workers are apart, resnet50 as at {gbit:g} Gbit/s"
    cases = []
    for case in _cases(what, with_tuned(systems), gbit, tensors):

        def measure(outcome: Outcome, case: Case = case) -> Figures:
            took = statistics.median(outcome.rounds_s)
            lead = greatest_lead([result["series"] for result in outcome.results])
            figures = {"time": Figure(took, "s"), "greatest lead": Figure(lead / 1e6, "MB")}
            for name, shares in (("evenly", EVEN), ("unevenly", UNEVEN)):
                if (
                    simulated := shared_s(job, case.setting.bandwidth, case.system, shares)
                ) is not None:
                    figures[f"simulated, sharing {name}"] = Figure(simulated, "s")
            return figures

        config = replace(case.config, sample_s=0.1)
        cases.append(replace(case, config=config, measure=measure))
    return cases


def greatest_lead(series: Sequence[Sequence[Sequence[float]]]) -> float:
    """Bytes that a worker has sent and another has not, at the same time. `series` of each worker:
    its clock, bytes sent since it began, bytes received."""
    begin = max(points[0][0] for points in series)
    end = min(points[-1][0] for points in series)
    times = np.arange(begin, end, 0.1)
    sent = np.array(
        [np.interp(times, [p[0] for p in points], [p[1] for p in points]) for points in series]
    )
    sent -= sent[:, :1]
    return float((sent.max(axis=0) - sent.min(axis=0)).max())


def shared_s(job: Job, bandwidth: float, system: System, shares: Sequence[float]) -> float | None:
    """An iteration, simulated, where each worker has a share of the server's link. None: of the
    policies that send large pieces in an order of their own, this is none."""
    policy = system.name.partition("-")[2].split()[0] if system.name.startswith("mercury") else ""
    if policy not in ("bytescheduler", "wfbp"):
        return None
    options = Options.of(_sizes(system))
    rates = [share * bandwidth for share in shares]
    cluster = Cluster(rates, (bandwidth,), latency_s=LATENCY_S, sharing="fair")
    done = simulate(SimulatedJob(job, policy, options, iterations=3), cluster)
    return float(done.outcomes[0].iteration_s.max(axis=1).mean())


def changing_rate(systems: Sequence[System]) -> list[Case]:
    """The rate halves and recovers: how soon the blocks are made for the new one."""
    setting = Setting(WORKERS, SERVERS, CHANGING[0])
    shape = _balanced("resnet18", 0.25)
    best = predict(
        workload_of(shape).job(), setting.bandwidth, "mercury", workers=WORKERS, servers=SERVERS
    )
    rounds = round(3 * CHANGE_S / (1.3 * best.iteration_s))
    config = Config("train", shape, rounds=rounds, warmup=WARMUP, sample_s=0.25, blocks_s=0.5)
    cases = []
    for system in _learning(systems):
        disturbance = Steps(CHANGING, CHANGE_S)

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

        rates_said = " and ".join(f"{rate / 1e6:g}" for rate in CHANGING)
        what = f"resnet18 x 0.25, {rates_said} Mbit/s in turn"
        seconds = 3.2 * CHANGE_S
        case = Case("prophet", what, system, setting, config, measure, seconds, LEARN)
        cases.append(replace(case, disturbance=disturbance))
    return cases


def first_iterations(systems: Sequence[System], rounds: int = 50) -> list[Case]:
    """While Prophet learns with its defaults: is it slower than the policy that it then is?"""
    setting = Setting(WORKERS, SERVERS, CHANGING[0])
    config = Config("train", _balanced("resnet18", 0.1), rounds=rounds)

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


def _balanced(model: str, scale: float) -> dict[str, object]:
    """With as much computation as a link of 1 Gbit/s needs for all workers' bytes."""
    sent = workload_of({"model": model, "scale": scale}).bytes
    balance_s = sent * 8 * WORKERS / SERVERS / (1e9 * TCP_SHARE)
    return {"model": model, "scale": scale, "compute_s": round(balance_s, 3), "steps": STEPS[model]}


def prophet(systems: Sequence[System], length: str) -> list[Case]:
    named = {system.name: system for system in systems}

    def of(*names: str) -> list[System]:
        return [named[name] for name in names if name in named]

    ours = (MERCURY, "mercury-prophet")
    rivals = of("stock-p3", "mercury-wfbp", "mercury-bytescheduler", *ours)
    if length == "quick":
        return rates(of("mercury-bytescheduler", *ours), [BEST_GBIT])
    cases = rates(rivals) + whole(of("zmq"))
    cases += batches_and_networks(of("mercury-bytescheduler", *ours))
    cases += slices(of("stock-p3"))
    cases += one_slow_link(of("stock-p3", "mercury-bytescheduler", *ours))
    cases += more_workers(of("mercury-prophet")) + apart(rivals)
    return cases + changing_rate(of("mercury-prophet")) + first_iterations(of(*ours))
