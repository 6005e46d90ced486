"""Runs jobs on a cluster until all have done their iterations."""

from __future__ import annotations

import gc
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Callable

from pslite_ext.forecast.model import ModelError, Timeline
from pslite_ext.forecast.model.job import Array
from pslite_ext.forecast.model.timeline import check_seconds
from pslite_ext.forecast.simulate.clock import Clock
from pslite_ext.forecast.simulate.cluster import Cluster, ClusterLinks
from pslite_ext.forecast.simulate.scheme import scheme
from pslite_ext.forecast.simulate.simulated_job import MOMENTS, NEVER, JobRun, SimulatedJob

EVENTS_A_REPORT = 100_000
EVENTS_LEAST = 4  # of a packet that is summed on a server, without latency


@dataclass(frozen=True)
class LinkUse:
    name: str
    bytes: float
    busy_s: float
    queue_bytes: float  # that waited before it at once, at most


@dataclass(frozen=True)
class Outcome:
    """What one job saw."""

    run: SimulatedJob
    iteration_s: Array  # iterations x workers
    times: Array  # what x workers x layers, of each worker's last iteration
    pushed_bytes: float
    pulled_bytes: float

    def timeline(self, worker: int = 0) -> Timeline:
        """A worker's last iteration; `bandwidth` is 0, for the links may differ."""
        job = self.run.job
        factor = self.run.slowness[worker] if self.run.slowness else 1.0
        return Timeline(
            policy=self.run.policy,
            bandwidth=0.0,
            names=tuple(layer.name for layer in job.layers),
            oracle_s=job.compute_s * factor,
            **dict(zip(MOMENTS, self.times[:, worker])),
        )


@dataclass(frozen=True)
class Simulation:
    outcomes: tuple[Outcome, ...]
    links: tuple[LinkUse, ...]
    end_s: float
    events: int


def packets_of(runs: Sequence[SimulatedJob], cluster: Cluster) -> float:
    """How many all workers send in all iterations, about."""
    packets = 0.0
    for run in runs:
        workers = len(cluster.worker_rates if run.workers is None else run.workers)
        piece = scheme(run.policy, run.options).piece_bytes or math.inf
        size = min(cluster.packet_bytes, piece)
        packets += workers * run.iterations * (float(run.job.bytes.sum()) / size + len(run.job))
    return packets


def simulate(
    runs: SimulatedJob | Sequence[SimulatedJob],
    cluster: Cluster,
    events_max: int | None = None,
    progress: Callable[[int, float], None] | None = None,
) -> Simulation:
    """`progress` is told the events and the simulated seconds so far, now and then."""
    clock = Clock()
    runs = [runs] if isinstance(runs, SimulatedJob) else list(runs)
    if not runs:
        raise ModelError("there is no job to simulate")
    packets = packets_of(runs, cluster)
    if events_max is not None and packets * EVENTS_LEAST > events_max:
        raise ModelError(
            f"{packets:.3g} packets are too many to simulate, at most "
            f"{events_max // EVENTS_LEAST:,} are: use larger packets and pieces, or fewer workers "
            "or iterations"
        )
    fabric = ClusterLinks(
        cluster,
        clock,
        by_priority=all(scheme(run.policy, run.options).streams for run in runs),
        several_jobs=len(runs) > 1,
    )
    started = [JobRun(run, name, cluster, fabric, clock) for name, run in enumerate(runs)]
    with _no_garbage_collection():
        while clock.run(EVENTS_A_REPORT):
            if events_max is not None and clock.events > events_max:
                raise ModelError(f"more than {events_max} events: use larger packets")
            if progress:
                progress(clock.events, clock.now)
    for job in started:
        assert (job.iteration_s != NEVER).all(), "workers wait for what nobody sends"
        check_seconds(job.iteration_s)
    outcomes = tuple(
        Outcome(job.run, job.iteration_s, job.times, job.pushed, job.pulled) for job in started
    )
    links = tuple(
        LinkUse(link.name, link.bytes, link.busy_s, link.queue_bytes) for link in fabric.links()
    )
    return Simulation(outcomes, links, clock.now, clock.events)


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Packets form no cycles, and looking for some among millions doubles the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
