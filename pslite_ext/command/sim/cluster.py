"""`mercury sim cluster`: jobs on machines that differ, in racks, on links that change."""

from __future__ import annotations

import argparse

import numpy as np

from pslite_ext.command.sim.answer import (
    EVENTS_MAX,
    Answer,
    index_in,
    job_of,
    names_of,
    network_of,
    pair,
    slowness_of,
)
from pslite_ext.forecast.model import ModelError, Options
from pslite_ext.forecast.simulate import Cluster, SimulatedJob, simulate
from pslite_ext.forecast.simulate.cluster import RateSpec
from pslite_ext.forecast.simulate.simulation import packets_of
from pslite_ext.quantity import bytes_per_second, seconds, size
from tracer.progress import Progress
from tracer.report.drawing import CYCLE, Canvas
from tracer.table import Table

PACKET_BYTES = 30e3
PACKETS_MAX = 20_000  # of a job's iteration; of a larger one the packets are larger
EVENTS_A_PACKET = 8
BUSIEST = 5  # links that are named


def answer(options: argparse.Namespace) -> Answer:
    jobs = [job_of(options, what) for what in options.jobs]
    names = names_of(options.jobs)
    known = Options.of(network_of(options))
    largest = max(float(job.bytes.sum()) for job in jobs)
    packet = known.packet_bytes or max(PACKET_BYTES, largest / PACKETS_MAX)
    workers, servers = known.workers, known.servers
    per_host: int = options.per_host
    # A host's sum waits for its slowest worker.
    of_each = slowness_of(options.slow_worker, options.workers)
    slowness = [max(of_each[i * per_host : (i + 1) * per_host]) for i in range(workers)]
    runs = [
        SimulatedJob(
            job,
            options.policy,
            known,
            iterations=options.iterations,
            slowness=slowness,
            jitter=options.jitter,
            seed=options.seed + place,
        )
        for place, job in enumerate(jobs)
    ]
    cluster = _cluster(options, workers, servers, packet, known.latency_s)
    expected = int(min(packets_of(runs, cluster) * EVENTS_A_PACKET, EVENTS_MAX))
    with Progress("simulating", expected, options.quiet) as progress:
        done = simulate(runs, cluster, EVENTS_MAX, lambda events, _: progress.reached(events))

    rows = [
        {
            "job": name,
            "worker" if per_host == 1 else "host": worker,
            "iteration_ms": (took := float(times.mean()) * 1e3),
            "computation_ms": (least := run.job.compute_s * factor * 1e3),
            "speed": least / max(took, 1e-12),
        }
        for name, run, outcome in zip(names, runs, done.outcomes)
        for worker, (times, factor) in enumerate(zip(outcome.iteration_s.T, slowness))
    ]
    title = f"{options.policy}, {options.workers} workers, {servers} servers"
    table = Table.of_rows(f"{title}: means of {options.iterations} iterations", rows)
    busiest = sorted(done.links, key=lambda link: -link.busy_s)[:BUSIEST]

    def draw(canvas: Canvas) -> None:
        (axes,) = canvas.axes(3.2)
        for place, (name, outcome) in enumerate(zip(names, done.outcomes)):
            slowest = outcome.iteration_s.max(axis=1) * 1e3
            turns = np.arange(1, len(slowest) + 1)
            axes.plot(turns, slowest, "o-", ms=3, color=CYCLE[place % len(CYCLE)], label=name)
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.set(xlabel="iteration", ylabel="slowest worker (ms)", ylim=(0, None))
        axes.legend()

    return Answer(
        table,
        draw,
        after=[
            f"{link.name}: busy {link.busy_s / max(done.end_s, 1e-12):.0%} of the time, "
            f"{link.bytes / 1e6:.1f} MB"
            + (f", queue up to {link.queue_bytes / 1e3:.0f} kB" if options.window else "")
            for link in busiest
        ],
        values={
            "policy": options.policy,
            "aggregate": options.aggregate,
            "end_s": done.end_s,
            "iteration_s": {
                name: outcome.iteration_s.max(axis=1).tolist()
                for name, outcome in zip(names, done.outcomes)
            },
        },
    )


def _cluster(
    options: argparse.Namespace, workers: int, servers: int, packet: float, latency_s: float
) -> Cluster:
    rate = bytes_per_second(options.bandwidth)
    changes = [pair(text, "TIME:RATE") for text in options.change]
    every: RateSpec = rate
    if changes:
        later = sorted((seconds(when), bytes_per_second(then)) for when, then in changes)
        every = ((0.0, rate), *later)
    nodes: dict[str, list[RateSpec]] = {"worker": [every] * workers, "server": [every] * servers}
    given: dict[tuple[str, int], float] = {}
    for text in options.node:
        name, value = pair(text, "NODE:RATE")
        kind = name.rstrip("0123456789")
        if kind not in nodes or name == kind:
            raise ModelError(f"--node {text}: a node is worker0, server0, ...")
        count, on_one = (options.workers, options.per_host) if kind == "worker" else (servers, 1)
        place = index_in(text, name[len(kind) :], count) // on_one
        nodes[kind][place] = own = bytes_per_second(value)
        if given.setdefault((kind, place), own) != own:
            raise ModelError(f"--node {text}: its link has another rate already")
    if options.aggregate == "rack" and not options.racks:
        raise ModelError("--aggregate rack needs --racks")
    if options.rack_bandwidth and not options.racks:
        raise ModelError("--rack-bandwidth needs --racks")
    if options.beside and options.window is None:
        raise ModelError("--beside needs --window")
    racks = options.racks or 0
    if racks > workers:
        raise ModelError(f"--racks {racks}: there are only {workers} workers")
    return Cluster(
        nodes["worker"],
        () if options.aggregate == "switch" else nodes["server"],
        latency_s=latency_s,
        packet_bytes=packet,
        sharing=options.sharing or ("priority" if options.window is None else "fifo"),
        aggregate=options.aggregate,
        racks=[worker * racks // workers for worker in range(workers)] if racks else (),
        rack_rate=bytes_per_second(options.rack_bandwidth) if options.rack_bandwidth else None,
        window_bytes=None if options.window is None else size(options.window),
        reaction_s=seconds(options.reaction) if options.reaction else 0.0,
        beside=options.beside,
    )
