"""`mercury sim scale`: from one worker to thousands."""

from __future__ import annotations

import argparse

import numpy as np

from pslite_ext.command.sim.answer import Answer, hosts_of, job_of, network_of, policies_of
from pslite_ext.command.sim.identical_workers import iterate
from pslite_ext.forecast.model import ModelError, Options
from pslite_ext.forecast.simulate.scheme import SCHEMES
from pslite_ext.quantity import as_rate, bytes_per_second
from tracer.progress import Progress
from tracer.report.drawing import CYCLE, Canvas
from tracer.table import Table

DEFAULT = "mercury,fifo,wfbp,ring"
MOST = 4096  # workers, unless told


def answer(options: argparse.Namespace) -> Answer:
    job, rate = job_of(options), bytes_per_second(options.bandwidth)
    if not options.policies:
        options.policies = "mercury,fifo" if options.aggregate == "switch" else DEFAULT
    policies = policies_of(options)
    if options.aggregate == "switch":
        unfit = [name for name in policies if name in SCHEMES and not SCHEMES[name].streams]
        if unfit:
            raise ModelError(f"policy '{unfit[0]}' keeps its sums on servers, not in a switch")
    known = Options.of(network_of(options))
    counts = _counts(options.per_host, options.most)
    hosts = [hosts_of(options, workers) for workers in counts]
    found: dict[str, list[float]] = {policy: [] for policy in policies}
    with Progress("simulating", len(counts) * len(policies), options.quiet) as progress:
        for number, nodes in enumerate(reversed(hosts)):  # what is too large is told at once
            servers = options.servers or nodes
            for place, policy in enumerate(policies, 1):
                point = iterate(job, policy, nodes, servers, rate, known, options.aggregate)
                found[policy].insert(0, point.iteration_s * 1e3)
                progress.reached(number * len(policies) + place)
    # How much more than one worker that never waits all of them get done.
    speedup = {
        f"{policy}_speedup": np.array(counts) * job.compute_s * 1e3 / np.maximum(times, 1e-12)
        for policy, times in found.items()
    }
    table = Table(
        f"one iteration at {as_rate(rate)} a node, in milliseconds; speedup over one worker alone",
        {
            "workers": counts,
            "servers": [
                0 if options.aggregate == "switch" else options.servers or n for n in hosts
            ],
            **found,
            **speedup,
        },
    )

    def draw(canvas: Canvas) -> None:
        (axes,) = canvas.axes(4.0)
        axes.plot(counts, counts, ":", color="black", label="ideal")
        for number, policy in enumerate(policies):
            colour = CYCLE[number % len(CYCLE)]
            axes.plot(counts, speedup[f"{policy}_speedup"], "o-", ms=3, color=colour, label=policy)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter("{x:g}")
        axes.set(xlabel="workers", ylabel="speedup")
        axes.grid(True)
        axes.legend()

    values = {"bandwidth_bytes_per_s": rate, "aggregate": options.aggregate}
    return Answer(table, draw, values=values)


def _counts(per_host: int, most: int | None) -> list[int]:
    """Powers of two: of workers, until they fill a host, then of full hosts; and what is asked."""
    doubled = [2**power for power in range(MOST.bit_length())]
    counts = {*(count for count in doubled if count < per_host), *(per_host * n for n in doubled)}
    if most:
        counts.add(most)
    return sorted(count for count in counts if count <= (most or MOST))
