"""Training when the network changes, is uneven, shared, or grows: the papers' scenarios, scaled."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Callable

from scripts.lab.bed import disturbance
from scripts.lab.bed.disturbance import Disturbance
from scripts.lab.benches.case import Case, Figure, Figures, Setting
from scripts.lab.benches.speed import RATIOS, SCALES
from scripts.lab.systems.job import Outcome
from scripts.lab.systems.neighbour import neighbour
from scripts.lab.systems.system import System
from scripts.lab.workloads.job_config import Config, workload_of

CHANGE_S = 5.0
LINK = 1e9
MODEL = "vgg16"
GROWTH = (1, 2, 4, 8)
GROWING = "as many servers as workers"  # what the report draws against their number
GROWING_LINK = LINK / 4  # so that this machine's processors keep up with all of them


@dataclass(frozen=True)
class World:
    what: str
    setting: Setting
    config: Config
    disturbance: Callable[[System, Config], Disturbance | None] = lambda _system, _config: None
    slower: float = 1.0  # an iteration takes about so many times as long as usual


def _fixed(made: Disturbance) -> Callable[[System, Config], Disturbance | None]:
    return lambda _system, _config: made


def _worlds(plain: Config) -> list[World]:
    usual = Setting(rate=LINK)
    both_ways = (("worker0", "server0"), ("server0", "worker0"))
    # What changes on the bed, and how many times as long an iteration takes then, about.
    changes = (
        ("0.6 to 1 Gbit/s at random", disturbance.random_rates(0.6e9, 1e9, CHANGE_S), 1.0),
        ("0.1 to 1 Gbit/s at random", disturbance.random_rates(0.1e9, 1e9, CHANGE_S), 1.0),
        ("one worker's link at half the rate", disturbance.slow_link("worker0", LINK / 2), 1.0),
        ("a TCP stream each way between a worker and a server", disturbance.flows(both_ways), 2.0),
    )
    slow_worker = replace(plain, slow_rank=0, slowness=2.0)
    return [
        *(World(what, usual, plain, _fixed(made), slower) for what, made, slower in changes),
        World("one worker computes twice as long", usual, slow_worker),
        World("two such jobs share the hosts", usual, plain, neighbour, slower=2.0),
    ]


def _mean_time(outcome: Outcome) -> Figures:
    """The mean: what changes is part of what is measured."""
    return {
        "time": Figure(statistics.mean(outcome.rounds_s), "s"),
        "slowest iteration": Figure(max(outcome.rounds_s), "s"),
    }


def _plain(rounds: int, link: float) -> tuple[Config, float]:
    """Training of MODEL, network-bound, its size in proportion to the link; and the seconds its
    bytes need one way."""
    shape = {"model": MODEL, "scale": SCALES[MODEL] * link / LINK}
    link_s = workload_of(shape).bytes * 8 / link
    compute_s = round(RATIOS["network-bound"] * link_s, 3)
    config = Config("train", {**shape, "compute_s": compute_s}, rounds=rounds, sample_s=0.05)
    return config, link_s


def _cases(systems: Sequence[System], worlds: Sequence[World], each_s: float) -> list[Case]:
    return [
        Case(
            "scenarios",
            f"{MODEL} x {world.config.tensors['scale']:g}, {world.what}",
            system,
            world.setting,
            world.config,
            _mean_time,
            (world.config.rounds + 1) * 3 * each_s * world.slower,
            timeout_s=600,
            disturbance=world.disturbance(system, world.config),
        )
        for world in worlds
        for system in systems
    ]


def scenarios(systems: Sequence[System], rounds: int) -> list[Case]:
    plain, link_s = _plain(rounds, LINK)
    return _cases(systems, _worlds(plain), link_s)


def growth(systems: Sequence[System], rounds: int, most: int) -> list[Case]:
    """As many servers as workers, each on a slower link than in the other scenarios."""
    plain, link_s = _plain(rounds, GROWING_LINK)
    worlds = [
        World(
            f"{GROWING}: {nodes}", Setting(nodes, nodes, GROWING_LINK), replace(plain, sample_s=0.0)
        )
        for nodes in GROWTH
        if nodes <= most
    ]
    return _cases(systems, worlds, link_s)
