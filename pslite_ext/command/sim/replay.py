"""`mercury sim replay`: a captured run, as recorded and under other conditions."""

from __future__ import annotations

import argparse

from pslite_ext.command.sim.answer import Answer, slowness_of
from pslite_ext.quantity import as_rate, bytes_per_second, seconds
from tracer.clocks import aligned, doubts
from tracer.progress import Progress
from tracer.replay import Conditions, own_policy, recorded, replay, self_check
from tracer.replay.replay import ERROR_GOOD, ERROR_MOST
from tracer.report.drawing import BLUE, Canvas
from tracer.run import read_run
from tracer.table import Table


def _speedup(own: float, other: float, error: float) -> float:
    """Nothing, if the model does not fit this run."""
    return own / other if other and abs(error) <= ERROR_MOST else float("nan")


def _trust(error: float) -> str:
    if abs(error) <= ERROR_GOOD:
        return "the model fits this run"
    if abs(error) <= ERROR_MOST:
        return f"read speed-ups and times as give or take {abs(error):.0%}"
    return "the model does not fit this run, so there are no speed-ups; do not rely on its times"


def answer(options: argparse.Namespace) -> Answer:
    run = read_run(options.traces, quiet=options.quiet)
    trips, alignment = aligned(run)
    found = recorded(run, trips)
    slow = options.slow_worker
    conditions = Conditions(
        policy=options.policy,
        workers=options.workers,
        servers=options.servers,
        bandwidth=None if options.bandwidth is None else bytes_per_second(options.bandwidth),
        latency_s=None if options.latency is None else seconds(options.latency),
        aggregate=options.aggregate,
        slowness=slowness_of(slow, options.workers or found.workers) if slow else (),
        forward_share=options.forward_share,
    )
    network = found.network
    length_us = int(found.iteration_s.max(axis=1).sum() * 1e6)
    with Progress("replaying as recorded", length_us, options.quiet) as progress:
        was, own = self_check(found, lambda _, now: progress.reached(int(now * 1e6)))
    error = own / was - 1
    own_kind = (own_policy(found), found.workers, found.servers)
    rows = [("recorded", *own_kind, was), ("replayed as recorded", *own_kind, own)]
    if conditions != Conditions():
        with Progress("replaying", length_us, options.quiet) as progress:
            other = replay(found, conditions, lambda _, now: progress.reached(int(now * 1e6)))
        rows.append(
            (
                "replayed",
                options.policy or own_policy(found),
                options.workers or found.workers,
                options.servers or found.servers,
                other.mean_s,
            )
        )
    names = ("what", "policy", "workers", "servers")
    columns = {name: [row[place] for row in rows] for place, name in enumerate(names)}
    table = Table(
        f"mean iteration of {len(found.iteration_s)} that were recorded whole",
        {
            **columns,
            "iteration_ms": [row[4] * 1e3 for row in rows],
            "speedup": [_speedup(own, row[4], error) for row in rows],
        },
        "speedup: relative to the replay as recorded, so that the model's error cancels out",
    )

    def draw(canvas: Canvas) -> None:
        (axes,) = canvas.axes(2.0)
        axes.barh([f"{row[0]} ({row[1]})" for row in rows], table["iteration_ms"], color=BLUE)
        axes.invert_yaxis()
        axes.set_xlabel("mean iteration (ms)")

    return Answer(
        table=table,
        draw=draw,
        lines=[
            f"the trace shows links of {as_rate(network.bandwidth)}, connections of "
            f"{as_rate(network.connection)}, a latency of {network.latency_s * 1e6:.0f} us",
        ],
        after=[
            f"self-check: a replay under the recorded conditions is off by {error:+.1%}: "
            + _trust(error),
            *(f"note: {problem}" for problem in [*run.problems, *doubts(run, alignment)][:5]),
        ],
        values={
            "recorded_iteration_s": was,
            "self_check_iteration_s": own,
            "self_check_error": error,
            "self_check_passed": abs(error) <= ERROR_MOST,
            "iteration_s": rows[-1][4],
            "bandwidth_bytes_per_s": network.bandwidth,
            "connection_bytes_per_s": network.connection,
            "latency_s": network.latency_s,
        },
    )
