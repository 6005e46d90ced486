"""Mercury's evaluation as it was published, on links of a twentieth of its rate.

Models are smaller, and compute and send for longer, so that both take the same share of an
iteration as they would at 10 Gbit/s on the GPU that all profiles are about. Figures are named as
in the paper.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace

from scripts.lab.bed import disturbance
from scripts.lab.benches.case import Case, Figure, Figures, Setting
from scripts.lab.benches.prediction import POLICY, floor_s, policy_s, while_rates_change
from scripts.lab.systems.job import Outcome
from scripts.lab.systems.system import MERCURY, System
from scripts.lab.workloads.job_config import Config, workload_of

PUBLISHED = 10e9  # bits per second
LINK = 500e6
RATES = (100e6, 250e6, 1e9)  # of Fig. 17:
PACKET_WORLDS = (*(("vgg16", rate) for rate in RATES), ("alexnet", RATES[-1]))
LINK_S = 0.55  # that a model's bytes need one way
MODELS = ("vgg16", "vgg16_32x32", "vgg19", "alexnet", "resnet50", "bert_base")  # Table II
MOST = ("vgg16", "resnet50", "bert_base")  # where not all are tried
SLOWED = ("vgg19", "resnet50", "bert_base")  # of Fig. 21
SLOWER = 0.5  # of the rate, on one worker's link
PACKETS = (4, 16, 64, 256, 1024, 4096)  # KiB
PACKETS_COMPUTE = 0.4  # of the computation, while sizes of packets are compared
TUNED_KIB = (256, 1024)  # ByteScheduler's partition and credit, beside its own 4 and 16 MiB
TUNED = "{}/{} KiB".format(*TUNED_KIB)  # what such a system is called, after its name
CHANGE_S = 5.0
CHANGES = ((0.6, 1.0), (0.1, 1.0))  # Fig. 18 and 19: the least and the greatest share of LINK
CHANGING_S = 30.0  # that is measured of each
TINY = 4  # bytes: all that such a push takes is what it takes to begin
TINY_COUNT = 200


def with_tuned(systems: Sequence[System]) -> list[System]:
    """ByteScheduler with other sizes, too: which are best depends on the model and the rate."""
    partition, credit = (str(kib << 10) for kib in TUNED_KIB)
    env = {"MERCURY_PARTITION_BYTES": partition, "MERCURY_CREDIT_BYTES": credit}
    rivals = [s.variant(TUNED, **env) for s in systems if s.name == "mercury-bytescheduler"]
    return [*systems, *rivals]


def tensors_of(model: str, rate: float = LINK, compute: float = 1.0) -> dict[str, object]:
    """With `compute` times the computation that there is beside so many bytes at 10 Gbit/s."""
    whole = workload_of({"model": model})
    scale = LINK_S * rate / 8 / whole.bytes
    compute_s = whole.compute_s * scale * PUBLISHED / rate * compute
    return {"model": model, "scale": round(scale, 4), "compute_s": round(compute_s, 4)}


def case_of(
    what: str,
    system: System,
    setting: Setting,
    config: Config,
    slower: float = 1.0,
    changes: tuple[float, float] | None = None,
) -> Case:
    """`slower`: of the rate, the slowest link's: all wait for it, as they do for a worker that
    computes longer. `changes`: the least and the greatest share of it that links have."""
    job = workload_of(config.tensors).job()
    bandwidth = setting.bandwidth * slower
    slowest = workload_of(config.tensors).with_compute(job.compute_s * config.slowness).job()

    def mean_s(iteration_s: Callable[[float], float]) -> float:
        if changes is None:
            return iteration_s(bandwidth)
        rates = (bandwidth * share for share in disturbance.drawn_rates(*changes))
        return while_rates_change(iteration_s, rates, CHANGE_S, config.rounds)

    floor = mean_s(lambda rate: floor_s(slowest, rate))
    predicted = None
    if system.name in POLICY:
        predicted = mean_s(lambda rate: policy_s(slowest, rate, system.name))

    def measure(outcome: Outcome) -> Figures:
        took = statistics.mean(outcome.rounds_s)
        figures = {
            "time": Figure(took, "s"),
            "computation / time": Figure(job.compute_s / took, ""),
            "ratio to floor": Figure(took / floor, ""),
            "processor time, worker": Figure(max(outcome.worker_cpu_s()) / config.rounds, "s"),
            "processor time, server": Figure(max(outcome.cpu_s("server")) / config.rounds, "s"),
        }
        if predicted is not None:
            figures["predicted / measured"] = Figure(predicted / took, "")
        return figures

    seconds = (config.rounds + config.warmup) * 1.7 * floor
    return Case("mercury_paper", what, system, setting, config, measure, seconds)


def _training(
    what: str,
    systems: Sequence[System],
    setting: Setting,
    tensors: dict[str, object],
    rounds: int,
    slower: float = 1.0,
    changes: tuple[float, float] | None = None,
    slowness: float = 1.0,
) -> list[Case]:
    slow_rank = 0 if slowness > 1 else -1
    config = Config("train", tensors, rounds=rounds, slow_rank=slow_rank, slowness=slowness)
    what = f"{what}, {tensors['model']} x {tensors['scale']:g}"
    return [case_of(what, system, setting, config, slower, changes) for system in systems]


def speed(systems: Sequence[System], length: str) -> list[Case]:
    """Fig. 13, and Fig. 16 with it: hosts with workers, and as many with servers."""
    cases = []
    for model in MODELS[:1] if length == "quick" else MODELS:
        for n in nodes(model, length):
            setting = Setting(n, n, LINK)
            cases += _training("Fig. 13", systems, setting, tensors_of(model), 4)
    return cases


def nodes(model: str, length: str) -> Sequence[int]:
    """So many workers, and so many servers."""
    if length == "quick":
        return (2,)
    if length == "full" or model == MOST[0]:
        return (2, 3, 4)
    return (2, 4) if model in MOST else (2,)


def packet_sizes(mercury: System, length: str) -> list[Case]:
    """Fig. 17: which packets train fastest."""
    sizes = PACKETS[::2] if length == "quick" else PACKETS
    systems = [mercury.variant(f"{kib} KiB", MERCURY_PACKET_BYTES=str(kib << 10)) for kib in sizes]
    cases = []
    for model, rate in PACKET_WORLDS[-1:] if length == "quick" else PACKET_WORLDS:
        # So little computation that nothing of the exchange is hidden for long.
        tensors = tensors_of(model, rate, PACKETS_COMPUTE)
        cases += _training("Fig. 17, packets", systems, Setting(rate=rate), tensors, 5)
    return cases


def changing(systems: Sequence[System], length: str) -> list[Case]:
    """Fig. 18 and 19: all links change every five seconds."""
    cases = []
    setting = Setting(rate=LINK)
    for figure, (least, most) in zip(("Fig. 18", "Fig. 19"), CHANGES):
        for model in MOST if length == "full" else MOST[:1]:
            tensors = tensors_of(model)
            rounds = round(CHANGING_S / (1.2 * LINK_S + float(str(tensors["compute_s"]))))
            what = f"{figure}, {least:g} to {most:g} of the rate"
            changes = (least, most)
            for case in _training(what, systems, setting, tensors, rounds, changes=changes):
                rates = disturbance.random_rates(least * LINK, most * LINK, CHANGE_S)
                cases.append(replace(case, disturbance=rates))
    return cases


def uneven(systems: Sequence[System]) -> list[Case]:
    """Fig. 21a: one worker computes twice as long."""
    cases = []
    for model in SLOWED:
        setting, tensors = Setting(rate=LINK), tensors_of(model)
        cases += _training("Fig. 21a", systems, setting, tensors, 4, slowness=2.0)
    return cases


def unbalanced(systems: Sequence[System]) -> list[Case]:
    """Fig. 21b: one worker's link has half the rate."""
    cases = []
    slow = disturbance.slow_link("worker0", LINK * SLOWER)
    for model in SLOWED:
        setting, tensors = Setting(rate=LINK), tensors_of(model)
        for case in _training("Fig. 21b", systems, setting, tensors, 4, SLOWER):
            cases.append(replace(case, disturbance=slow))
    return cases


def beginnings(systems: Sequence[System]) -> list[Case]:
    """What a push takes that has next to nothing to carry: one, and one of many under way."""
    cases = []
    for count in (1, TINY_COUNT):
        config = Config("rounds", {"count": count, "bytes": TINY}, rounds=20, warmup=3)

        def measure(outcome: Outcome, count: int = count) -> Figures:
            each = statistics.median(outcome.rounds_s) / count
            return {"push and pull": Figure(1e6 * each, "us")}

        what = f"start-up, {count} pushes of {TINY} bytes at a time"
        for system in systems:
            setting = Setting(rate=1e9)
            cases.append(Case("mercury_paper", what, system, setting, config, measure, 1.0))
    return cases


def mercury_paper(every: Sequence[System], length: str) -> list[Case]:
    names = ("stock", "stock-p3", "mercury-bytescheduler", "mercury-fifo", MERCURY)
    systems = [system for system in every if system.name in names]
    cases = speed(with_tuned(systems), length)
    for system in systems:
        if system.name == MERCURY:
            cases += packet_sizes(system, length)
    if length == "quick":
        return cases
    rivals = with_tuned(systems)
    cases += changing(rivals, length) + uneven(rivals) + unbalanced(rivals)
    return cases + beginnings(systems)
