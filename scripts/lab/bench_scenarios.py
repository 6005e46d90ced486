"""Training when the network changes, is uneven, or grows: the papers' scenarios, at a tenth."""

from __future__ import annotations

import random
import statistics
import threading
from collections.abc import Sequence
from dataclasses import replace

from bed import LoopbackBed
from bench_case import Case, Figure, Figures, Setting, Weather
from bench_speed import RATIOS, SCALES
from job import Outcome
from measured import Config, workload_of
from systems import System

CHANGE_S = 5.0
LINK = 1e9
MODEL = "vgg16"


def _random_rates(low: float, high: float) -> Weather:
    """Every host's link between `low` and `high`, the same for all, the same in every run."""

    def weather(bed: LoopbackBed, over: threading.Event) -> None:
        chance = random.Random(6)
        while True:
            rate = chance.uniform(low, high)
            for host in bed.hosts:
                bed.set_rate(host, rate, rate)
            if over.wait(CHANGE_S):
                return

    return weather


def _slow_link(bed: LoopbackBed, _over: threading.Event) -> None:
    bed.set_rate("worker0", LINK / 2, LINK / 2)


def _mean_time(outcome: Outcome) -> Figures:
    """The mean: what changes is part of what is measured."""
    each = [max(times) for times in zip(*(r["times_s"] for r in outcome.results))]
    return {
        "time": Figure(statistics.mean(each), "s"),
        "slowest iteration": Figure(max(each), "s"),
    }


def scenarios(systems: Sequence[System], rounds: int) -> list[Case]:
    shape = {"model": MODEL, "scale": SCALES[MODEL]}
    link_s = workload_of(shape).bytes * 8 / LINK
    compute_s = round(RATIOS["network-bound"] * link_s, 3)
    plain = Config("train", {**shape, "compute_s": compute_s}, rounds=rounds, sample_s=0.05)
    usual = Setting(rate=LINK)
    worlds: list[tuple[str, Setting, Config, Weather | None]] = [
        ("0.6 to 1 Gbit/s at random", usual, plain, _random_rates(0.6e9, 1e9)),
        ("0.1 to 1 Gbit/s at random", usual, plain, _random_rates(0.1e9, 1e9)),
        ("one worker's link at half the rate", usual, plain, _slow_link),
        (
            "one worker computes twice as long",
            usual,
            replace(plain, slow_rank=0, slowness=2.0),
            None,
        ),
    ]
    for nodes in (1, 2, 4):
        half = Setting(nodes, nodes, LINK / 2)
        slower = replace(plain, tensors={**shape, "compute_s": 2 * compute_s})
        worlds.append((f"as many servers as workers: {nodes}", half, slower, None))
    return [
        Case(
            "scenarios",
            f"{MODEL} x {SCALES[MODEL]:g}, {what}",
            system,
            setting,
            config,
            _mean_time,
            (rounds + 1) * 3 * link_s,
            weather=weather,
        )
        for what, setting, config, weather in worlds
        for system in systems
    ]
