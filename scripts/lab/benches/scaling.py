"""More and more hosts, each link with the same bytes to carry: how near to the floor of each.

Two placements: servers on hosts of their own, and one beside each worker, where links carry what a
ring's do. Systems without servers are measured once, beside ours on the same hosts. And four by
four with one host whose link is slower.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from scripts.lab.bed.disturbance import slow_link
from scripts.lab.benches import flood
from scripts.lab.benches.case import Case, Figure, Figures, Setting
from scripts.lab.benches.peers import peers_floor_s
from scripts.lab.benches.prediction import floor_s, simulated_s
from scripts.lab.benches.slow_host import SlowHost
from scripts.lab.benches.speed import RATIOS, SCALES
from scripts.lab.systems.job import CORES, Outcome
from scripts.lab.systems.system import MERCURY, System
from scripts.lab.systems.watch import Links, worst
from scripts.lab.workloads.job_config import Config, workload_of

# All links together, one way: so the processors of one machine are about equally busy at each n,
# and two cores of today less than a third.
TOGETHER = 4e8
# Of the scales in speed.py: 33 MB on each link, and so 4 MB in each flow of eight workers and an
# iteration.
SHARE = 0.3
QUICK = 0.3  # of that
NODES = ((2, 2), (4, 4), (8, 8))
MODELS = ("vgg16", "resnet50", "bert_base")
RATES = (1.0, 0.5)  # of a host's part of TOGETHER
SLOW_NODES = (4, 4)
SLOW_HOSTS = (SlowHost("worker0", 0.5), SlowHost("server0", 0.5))
STREAM_S = 8.0
MEASURED_S = 8.0  # at least, of short iterations: what start-up left behind ends meanwhile
PUSHES = 40


@dataclass(frozen=True)
class Asked:
    """What the command line may choose; None: as usual."""

    nodes: Sequence[tuple[int, int]] | None = None
    rate: float | None = None
    scale: float | None = None
    models: Sequence[str] | None = None
    colocate: bool = False
    slow: SlowHost | None = None


def link_figures(links: Links, rate: float) -> Figures:
    used = links.used(rate).values()
    return {
        "sent again, worst host": Figure(100 * worst([*links.retransmitted().values()]), "%"),
        "dropped, worst host": Figure(worst([t.drops for t in links.change.values()]), "packets"),
        "queue, worst host": Figure(worst([*links.waiting().values()]) / 1e3, "kB"),
        "link used, least": Figure(min((max(ways) for ways in used), default=0.0), ""),
        "link used, most": Figure(worst([max(ways) for ways in used]), ""),
    }


def case_of(
    what: str, system: System, setting: Setting, config: Config, slow: SlowHost | None = None
) -> Case:
    floor = peers_floor_s(config, setting, 1.0, system.servers)
    env, disturbance = {}, None
    if slow is not None:
        bandwidth = slow.bandwidth(setting, system.servers)
        floor = floor_s(workload_of(config.tensors).job(), bandwidth)
        env = slow.env(setting) if system.ours else {}
        disturbance = slow_link(slow.host, (setting.rate or 0.0) * slow.speed)
        what = f"{what}, {slow}"

    def foretold(took: float) -> Figures:
        plain = slow is None and setting.per_host == 1 and setting.servers <= setting.workers
        if system.name != MERCURY or not plain:
            return {}
        simulated = simulated_s(workload_of(config.tensors).job(), setting)
        return {
            "simulated time": Figure(simulated, "s"),
            "simulated / measured": Figure(simulated / took, ""),
        }

    def measure(outcome: Outcome) -> Figures:
        took = statistics.median(outcome.rounds_s)
        spent = sum(outcome.worker_cpu_s())
        spent += sum(outcome.cpu_s("server")) if system.servers else 0.0
        figures = {
            "time": Figure(took, "s"),
            "ratio to floor": Figure(took / floor, ""),
            "floor": Figure(floor, "s"),
            **foretold(took),
            "processors": Figure(100 * spent / outcome.seconds / CORES, "%"),
            "sent by a worker's host": Figure(
                max(sent for sent, _ in outcome.wire_bytes()) / config.rounds / 1e6, "MB"
            ),
        }
        if outcome.links is not None and setting.rate is not None:
            figures.update(link_figures(outcome.links, setting.rate))
        return figures

    seconds = (config.rounds + config.warmup) * 1.5 * floor
    return Case(
        *("scaling", what, system, setting, config, measure, seconds),
        env=env,
        disturbance=disturbance,
        watched=True,
    )


def training(
    systems: Sequence[System],
    model: str,
    scale: float,
    setting: Setting,
    rounds: int,
    slow: SlowHost | None = None,
    measured_s: float = MEASURED_S,
    ratio: float = RATIOS["network-bound"],
) -> list[Case]:
    shape = {"model": model, "scale": scale}
    compute_s = round(ratio * setting.link_s(workload_of(shape).bytes), 3)
    config = Config("train", {**shape, "compute_s": compute_s})
    enough = math.ceil(measured_s / peers_floor_s(config, setting, 1.0, servers=True))
    config = replace(config, rounds=max(rounds, enough))
    what = f"{model} x {scale:.3g}, {compute_s:g} s of computation"
    return [case_of(what, system, setting, config, slow) for system in systems]


def settings(
    nodes: Sequence[tuple[int, int]], rate: float | None, shares: Sequence[float], beside: bool
) -> list[Setting]:
    return [
        Setting(n, m, rate or TOGETHER / n * share, beside=beside)
        for n, m in nodes
        for share in (shares if rate is None else shares[:1])
    ]


def scaling(
    systems: Sequence[System], asked: Asked, rounds: int, *, quick: bool = False
) -> list[Case]:
    nodes = asked.nodes or (NODES[1:] if quick else NODES)
    models = asked.models or (MODELS[:1] if quick else MODELS)
    shares = RATES[:1] if quick else RATES
    cases = []
    for beside in (True,) if asked.colocate else (False, True):
        # Who has no servers has nothing to place.
        here = [s for s in systems if s.servers or beside]
        for setting in settings(nodes, asked.rate, shares, beside):
            for model in models:
                scale = asked.scale or SCALES[model] * SHARE * (QUICK if quick else 1.0)
                slow = asked.slow if asked.slow and asked.slow.is_in(setting) else None
                measured_s = 0.0 if quick else MEASURED_S
                cases += training(here, model, scale, setting, rounds, slow, measured_s)
    return cases


def slow_hosts(systems: Sequence[System], rounds: int) -> list[Case]:
    """Of ours and of systems without servers: others cannot give a server less to do."""
    cases = []
    model = MODELS[0]
    for beside in (False, True):
        here = [s for s in systems if s.ours or (beside and not s.servers)]
        (setting,) = settings([SLOW_NODES], None, RATES[:1], beside)
        for slow in SLOW_HOSTS:
            if slow.is_in(setting):
                cases += training(here, model, SCALES[model] * SHARE, setting, rounds, slow)
    return cases


def streams(systems: Sequence[System], asked: Asked) -> list[Case]:
    """How full links are of bulk, and how long something urgent takes among it."""
    cases = []
    for setting in settings(asked.nodes or NODES, asked.rate, RATES[:1], asked.colocate):
        cases += flood.goodput(systems, STREAM_S, [setting], bench="scaling")
        cases += flood.urgent(systems, PUSHES, setting, bench="scaling")
    return cases
