"""MLfabric against a ring, a tree and plain asynchronous training, on a network that changes.

After the evaluation of MLfabric's authors: thirty workers on fifteen hosts, scheduler and server on
one more. A model of theirs has 100 MB, ours 0.954; links have a hundredth of their rates, so that a
transfer takes as long as theirs, and times are not scaled.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from scripts.lab.bed.drawn_network import NETWORKS, DrawnNetwork
from scripts.lab.benches.case import TCP_SHARE, Case, Figure, Figures, Setting
from scripts.lab.benches.race_track import Track, folder
from scripts.lab.systems import checkpoints
from scripts.lab.systems.job import CORES, Outcome, paired
from scripts.lab.systems.system import FABRIC, TREE, System
from scripts.lab.systems.tree import parents
from scripts.lab.workloads.job_config import Config
from scripts.lab.workloads.stragglers import KINDS
from tracer.fabric import History, quantile, read

SCALE = 0.01  # of the authors' rates
COMPUTE_S = 0.1
MUCH_S = 1.0
SWEEP_S = 0.18  # over a worker's documents
WORKERS = 30
# What they learn fastest with: all together, of 0.05, 0.07, 0.1, 0.15 and 0.2; each on its own, of
# 0.001, 0.002, 0.003, 0.005 and 0.007.
RATES = {"together": 0.07, "apart": 0.002}
PARTIAL, FULL = 0.8, 0.93
LIKELY = -4.6  # of a held-out word, its log-likelihood
AT_MOST_S = {PARTIAL: 45.0, FULL: 100.0, LIKELY: 100.0}
STRAGGLERS = [kind for kind in KINDS if kind != "C0"]
SLOW = 2.5e9  # unscaled: what counts as a slow link in N2
# Norms by which a replica may differ, by how long a race is. That of an update is about 0.01.
BOUNDS = {PARTIAL: (0.0, 0.02, 0.1, 0.5), FULL: (0.5, 3.0)}
NEAR = 0.5
CHECKPOINTED = "LAB_CHECKPOINT_EVERY"
CHECKPOINT_EVERY = (1, 20 * WORKERS)  # versions: as often as it can, and every 20 iterations


@dataclass(frozen=True)
class Paired(Setting):
    """Two workers to a host; the scheduler and the server on one more; others on their own."""

    workers: int = WORKERS
    servers: int = 1
    replica: bool = False
    rate: float | None = 10e9 * SCALE
    classes: bool = True

    def places(self) -> dict[str, str]:
        return paired(self.workers, self.servers, self.replica)

    def __str__(self) -> str:
        hosts = f"{self.workers} workers on {self.workers // 2} hosts"
        return f"{hosts}, 10 to {(self.rate or 0) / 1e6:g} Mbit/s"


def bounded(fabric: System, versions: int) -> System:
    return fabric.variant(f"A-{versions}", MERCURY_FABRIC_DELAY_BOUND=str(versions))


def synchronous(fabric: System) -> System:
    return fabric.variant("S", MERCURY_FABRIC_MODE="sync")


def _control(history: History) -> Figures:
    """How long updates take to the scheduler, are planned, and their orders take back; and for how
    long they wait for that plan."""
    parts = {
        "control": history.control_s,
        "way to the scheduler": history.heard_after_s,
        "planning": history.planning_s,
        "way back": history.told_after_s,
        "wait for a plan": history.planned_after_s,
    }
    return {
        f"{name}, {word}": Figure(1e3 * quantile(times, share), "ms")
        for name, times in parts.items()
        if times
        for word, share in (("median", 0.5), ("99 %", 0.99))
    }


def _percentiles(delays: Iterator[int]) -> Figures:
    ordered = sorted(delays)
    if not ordered:
        return {}
    at = {"delay, median": 0.5, "delay, 95 %": 0.95, "delay, most": 1.0}
    last = len(ordered) - 1
    return {name: Figure(float(ordered[round(last * part)]), "") for name, part in at.items()}


def _of_history(history: History) -> Figures:
    dropped = sum(history.dropped.values())
    applied = sum(history.delays.values())
    return {
        "dropped": Figure(100 * dropped / max(1, dropped + applied), "%"),
        **_percentiles(history.delays.elements()),
        "models passed on": Figure(
            100 * history.passed_on / max(1, sum(history.trees.values())), "%"
        ),
        "plans": Figure(float(history.plans), ""),
        "updates a plan": Figure(applied / max(1, history.plans), ""),
        "groups": Figure(float(history.groups), ""),
        **_control(history),
    }


def _of_hops(track: Track, applied: int, replica: bool) -> Figures:
    hops = track.hops()
    slow = sum(track.is_slow(hop.source, hop.target, hop.start, SLOW) for hop in hops)
    # What goes to the server through it, too.
    copied = sum(hop.bytes for hop in hops if hop.to_replica)
    figures = {
        "transfers": Figure(float(len(hops)), ""),
        "over slow links": Figure(100 * slow / max(1, len(hops)), "%"),
    }
    if replica:
        figures["to the replica, an update"] = Figure(copied / max(1, applied) / 1e6, "MB")
    return figures


def _of_checkpoints(track: Track, applied: int) -> Figures:
    found = checkpoints.written(track.trace)
    return {
        "checkpoints": Figure(float(found.checkpoints), ""),
        "to the disk, an update": Figure(found.bytes / max(1, applied) / 1e6, "MB"),
        "lost with the server, at most": Figure(float(found.most_lost), "updates"),
    }


def _of_tree(track: Track, setting: Setting) -> Figures:
    """Each iteration a message goes up, and one down, each edge between two hosts."""
    at = [host for name, host in setting.places().items() if name.startswith("worker")]
    edges = [(at[i], at[j]) for i, j in enumerate(parents(at)) if j is not None and at[i] != at[j]]
    ways = [way for child, parent in edges for way in ((child, parent), (parent, child))]
    slow = [track.is_slow(*way, look.t, SLOW) for look in track.looks for way in ways]
    return {
        "transfers": Figure(float(len(slow)), ""),
        "over slow links": Figure(100 * sum(slow) / max(1, len(slow)), "%"),
    }


def _case(what: str, system: System, setting: Setting, track: Track, env: dict[str, str]) -> Case:
    def measure(outcome: Outcome) -> Figures:
        figures: Figures = {}
        if track.took_s is not None:
            figures["time"] = Figure(track.took_s, "s")
        figures["arrived"] = Figure(float(track.took_s is not None), "")
        seconds = outcome.seconds
        gradients = sum(r["iterations"] for r in outcome.results)
        busy = outcome.samples["end"].machine_cpu_s - outcome.samples["begin"].machine_cpu_s
        best = statistics.mean(look.quality for look in sorted(track.looks)[-5:])
        figures |= {
            "ran for": Figure(seconds, "s"),
            track.quality: Figure(best, ""),
            "gradients": Figure(float(gradients), ""),
            "gradients a second": Figure(gradients / seconds, ""),
            "processors": Figure(100 * busy / seconds / CORES, "%"),
            "overran": Figure(100 * sum(r["overran"] for r in outcome.results) / gradients, "%"),
        }
        if system.name.startswith(FABRIC):
            history = read(track.trace)
            applied = sum(history.delays.values())
            figures |= _of_history(history) | _of_hops(track, applied, system.replica)
            if CHECKPOINTED in system.env:
                figures |= _of_checkpoints(track, applied)
        elif system.name == TREE:
            figures |= _of_tree(track, setting)
        elif "delays" in outcome.results[0]:
            figures |= _percentiles(
                int(delay)
                for result in outcome.results
                for delay, count in result["delays"].items()
                for _ in range(count)
            )
        return figures

    return Case(
        *("fabric", what, system, setting, Config("race", track.told()), measure),
        track.at_most_s / 2,
        env={"MERCURY_TRACE_DIR": str(track.trace), **env},
        timeout_s=track.at_most_s + 90,
        disturbance=track,
        hear=track.hear,
    )


def seed_of(repeat: int) -> int:
    return 1 + repeat


def race(
    system: System,
    stragglers: str,
    network: str,
    target: float = PARTIAL,
    *,
    workers: int = WORKERS,
    servers: int = 1,
    lag_s: float = 0.2,
    fed: bool = True,
    compute_s: float | None = None,
    note: str = "",
    topics: bool = False,
    replica: bool = False,
    repeat: int = 0,
) -> Case:
    """Each repeat has rates and stragglers of its own, the same for all systems."""
    options: dict[str, Any] = {"workers": workers, "servers": servers, "lag_s": lag_s, "fed": fed}
    options |= {"compute_s": compute_s, "note": note, "topics": topics, "replica": replica}
    feed = folder() / "feed" if fed and system.name.startswith(FABRIC) else None
    seed = seed_of(repeat)
    draws = DrawnNetwork(network, SCALE, seed=seed, feed=feed, lag_s=lag_s, share=TCP_SHARE)
    together = not system.servers or system.env.get("MERCURY_FABRIC_MODE") == "sync"
    rate = RATES["together" if together else "apart"]
    seconds = COMPUTE_S if compute_s is None else compute_s
    track = Track(draws, stragglers, rate, target, AT_MOST_S[target], seconds, topics)
    curve = None if note else track.curve
    env = {} if feed is None else {"MERCURY_FABRIC_FEED": str(feed)}
    what = f"{'LDA, ' if topics else ''}{stragglers} {network}, to {target:g}{note}"
    setting = Paired(workers, servers, replica=replica)
    case = replace(_case(what, system, setting, track, env), curve=curve)
    again = partial(race, system, stragglers, network, target, **options)
    return replace(case, again=lambda number: again(repeat=number))


def whole(system: System) -> System:
    """What is passed on is passed on when all of it is there, as in the authors' MLfabric."""
    return replace(
        system,
        name=f"{system.name}, whole",
        env={**system.env, "MERCURY_FABRIC_FORWARDING": "whole"},
    )


def forwarding(fabric: System) -> list[Case]:
    stored = [whole(bounded(fabric, 30)), whole(synchronous(fabric))]
    cells = (("C1", "N1"), ("C1", "N2"), ("C2", "N2"))
    return [race(system, *cell) for cell in cells for system in stored]


def serving(fabric: System) -> list[Case]:
    """How much more several servers can do, each on a host of its own."""
    return [
        race(
            bounded(fabric, 30),
            *cell,
            servers=servers,
            note=f", {servers} server{'s' if servers > 1 else ''}",
        )
        for cell in (("C1", "N1"), ("C3", "N1"), ("C2", "N2"), ("C1", "N3"))
        for servers in (1, 3)
    ]


def without(fabric: System, part: str) -> System:
    """A-30 without one part of the planner."""
    if part == "drops":  # no update is ever too old
        name, env = "no drops", {"MERCURY_FABRIC_DELAY_BOUND": str(1 << 30)}
    else:
        name = f"A-30, no {part}"
        env = {"MERCURY_FABRIC_DELAY_BOUND": "30", "LAB_WITHOUT": part}
    return fabric.variant(name, **env)


def ablations(fabric: System) -> list[Case]:
    """What each part of the planner brings, and what an old view of the network costs."""
    whole = bounded(fabric, 30)
    parts = [whole, *(without(fabric, part) for part in ("order", "aggregation", "drops"))]
    cases = [race(system, "C2", "N2", note=", parts") for system in parts]
    for network in ("N2", "p1 = .2"):
        for lag_s in (0.2, 2.0):
            cases.append(race(whole, "C1", network, lag_s=lag_s, note=f", told {lag_s:g} s late"))
        cases.append(race(whole, "C1", network, fed=False, note=", measured by itself"))
    return cases


def replication(fabric: System) -> list[Case]:
    """What a replica costs that is on the way to the server, and what one costs that is sent its
    own copies, as the authors' is, by how far it may be behind; beside them what checkpoints cost,
    and none of them."""

    def replicated(bound: float) -> System:
        env = {"MERCURY_FABRIC_DIVERGENCE_BOUND": repr(bound)}
        return replace(bounded(fabric, 30).variant(f"within {bound:g}", **env), replica=True)

    alone = bounded(fabric, 30)
    written = [
        alone.variant(f"checkpoint every {every}", **{CHECKPOINTED: str(every)})
        for every in CHECKPOINT_EVERY
    ]
    on_the_way = replicated(NEAR)
    near = {PARTIAL: [on_the_way], FULL: [*written, on_the_way]}
    apart = {t: [whole(replicated(bound)) for bound in bounds] for t, bounds in BOUNDS.items()}
    return [
        race(system, "C1", "N1", target, note=", replica", replica=True)
        for target in (PARTIAL, FULL)
        for system in (alone, *near[target], *apart[target])
    ]


def computing(systems: Sequence[System]) -> list[Case]:
    """With far more to compute for each byte, as of a model with few weights and large inputs."""
    note = f", {MUCH_S:g} s of computation"
    return [race(system, "C2", "N1", compute_s=MUCH_S, note=note) for system in systems]


def sampling(systems: Sequence[System]) -> list[Case]:
    """Topics of documents, which no gradient finds: updates that were dropped are made up for."""
    options: dict[str, Any] = {"compute_s": SWEEP_S, "topics": True}
    networks = ("N1", "N2")
    return [race(s, "C1", network, LIKELY, **options) for network in networks for s in systems]


def cells(systems: Sequence[System], more: Sequence[System] = ()) -> list[Case]:
    """`more`: in the first cell, of which the authors show curves."""
    networks = [name for name in NETWORKS if name.startswith("N")]
    found = [(stragglers, network) for stragglers in STRAGGLERS for network in networks]
    racers = {cell: [*systems] for cell in found}
    racers[found[0]] += more
    return [race(system, *cell) for cell, of in racers.items() for system in of]
