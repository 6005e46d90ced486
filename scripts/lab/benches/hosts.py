"""Hosts with several workers: what crosses a host's link is to be the same, however many they are.

A host's workers are summed on it, so the floor is that of one worker a host. DDP's ring goes
through all workers, in the order of their ranks: of each host's workers, one sends to another host.
It has four connections to each other worker, and the best of three bucket sizes counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from scripts.lab.benches import scaling
from scripts.lab.benches.case import Case, Setting
from scripts.lab.benches.pytorch import with_buckets
from scripts.lab.benches.speed import SCALES
from scripts.lab.systems.system import DDP, System

# Hosts, and workers of each: two cores emulate no more than sixteen.
CELLS = ((2, 1), (2, 2), (2, 4), (2, 8), (4, 1), (4, 2), (4, 4))
QUICK = ((2, 1), (2, 4))
RATE = 100e6
SHARE = 0.25  # of the scales in speed.py: an iteration takes two to three seconds
CONNECTIONS = "4"


def hosts(
    systems: Sequence[System], asked: scaling.Asked, rounds: int, length: str = "usual"
) -> list[Case]:
    """`asked.nodes`: hosts, and workers of each."""
    quick = length == "quick"
    env = {"LAB_CONNECTIONS": CONNECTIONS}
    many = [replace(s, env={**s.env, **env}) if s.name == DDP else s for s in systems]
    cases = []
    models = asked.models or (scaling.MODELS[:1] if quick else scaling.MODELS)
    for beside in (True,) if asked.colocate or quick else (True, False):
        here = with_buckets([s for s in many if s.servers or beside])
        for n, per_host in asked.nodes or (QUICK if quick else CELLS):
            rate = asked.rate or RATE
            setting = Setting(n * per_host, n, rate, beside=beside, per_host=per_host)
            for model in models:
                scale = asked.scale or SCALES[model] * SHARE
                cases += scaling.training(here, model, scale, setting, rounds, measured_s=0.0)
    return [replace(case, bench="hosts", timeout_s=600) for case in cases]
