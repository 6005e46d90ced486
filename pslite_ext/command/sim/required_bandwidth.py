"""`mercury sim required-bandwidth`: what keeps computation from waiting."""

from __future__ import annotations

import argparse
import math

import numpy as np

from pslite_ext.command.sim.answer import Answer, job_of, names_of, network_of, policies_of
from pslite_ext.forecast.model import ModelError, required_bandwidth
from tracer.progress import Progress
from tracer.report.drawing import CYCLE, Canvas
from tracer.table import Table


def answer(options: argparse.Namespace) -> Answer:
    policies = [name for name in policies_of(options) if name != "oracle"]
    if not policies:
        raise ModelError("the oracle needs no bandwidth: name another policy")
    network = network_of(options)
    names = names_of(options.jobs)
    jobs = [job_of(options, what) for what in options.jobs]
    needs: dict[str, list[float]] = {policy: [] for policy in policies}
    with Progress("searching", len(jobs) * len(policies), options.quiet) as progress:
        for number, job in enumerate(jobs):
            for place, policy in enumerate(policies, 1):
                needs[policy].append(required_bandwidth(job, policy, options.target, **network))
                progress.reached(number * len(policies) + place)
    gbit = {policy: np.array(rates) * 8 / 1e9 for policy, rates in needs.items()}
    table = Table(
        f"Gbit/s from which on an iteration keeps more than {options.target:g} of its speed",
        {"model": names, **gbit},
    )
    after = []
    if "mercury" in needs and "wfbp" in needs:
        for name, ours, theirs in zip(names, needs["mercury"], needs["wfbp"]):
            if math.isfinite(theirs):
                after.append(f"{name}: mercury needs {ours / theirs:.0%} of what wfbp needs")

    def draw(canvas: Canvas) -> None:
        (axes,) = canvas.axes(3.6)
        width = 0.8 / len(policies)
        for number, policy in enumerate(policies):
            at = np.arange(len(names)) + number * width
            finite = np.where(np.isfinite(gbit[policy]), gbit[policy], 0.0)
            axes.bar(at, finite, width, color=CYCLE[number % len(CYCLE)], label=policy)
        axes.set_xticks(np.arange(len(names)) + 0.4 - width / 2, names)
        axes.set_ylabel("required bandwidth (Gbit/s)")
        axes.legend(ncols=4)

    return Answer(table, draw, after=after, values={"target": options.target})
