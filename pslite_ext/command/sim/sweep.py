"""`mercury sim sweep`: how speed depends on the bandwidth."""

from __future__ import annotations

import argparse

import numpy as np

from pslite_ext.command.sim.answer import Answer, job_of, network_of, policies_of
from pslite_ext.forecast.model import ModelError, sweep
from pslite_ext.quantity import bytes_per_second
from tracer.report.drawing import CYCLE, Canvas
from tracer.table import Table


def answer(options: argparse.Namespace) -> Answer:
    low, high = bytes_per_second(options.low), bytes_per_second(options.high)
    if not low < high:
        raise ModelError(f"--from {options.low} is not less than --to {options.high}")
    if options.points < 2:
        raise ModelError("--points 1: a sweep has at least two, --from and --to")
    rates = np.geomspace(low, high, options.points)
    policies = policies_of(options)
    found = sweep(job_of(options), rates, policies, **network_of(options))
    table = Table(
        "speed relative to a job that never waits",
        {"gbit_per_s": rates * 8 / 1e9, **{policy: found.speed(policy) for policy in policies}},
    )

    def draw(canvas: Canvas) -> None:
        (axes,) = canvas.axes(4.0)
        for number, policy in enumerate(name for name in policies if name != "oracle"):
            colour = CYCLE[number % len(CYCLE)]
            axes.plot(table["gbit_per_s"], table[policy], color=colour, label=policy)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter("")
        axes.set(xlabel="bandwidth (Gbit/s)", ylabel="t_oracle / t_iter", ylim=(0, 1.05))
        axes.grid(True)
        axes.legend(loc="lower right")

    values = {"oracle_s": found.oracle_s, "policies": policies}
    return Answer(table, draw, values=values, rows=30)
