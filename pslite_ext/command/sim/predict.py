"""`mercury sim predict`: one iteration, layer by layer."""

from __future__ import annotations

import argparse

import numpy as np

from pslite_ext.command.sim.answer import Answer, job_of, network_of
from pslite_ext.forecast.model import POLICIES, Job, Timeline, predict
from pslite_ext.forecast.model.job import Array
from pslite_ext.quantity import as_rate, bytes_per_second
from tracer.report.drawing import BLUE, GREEN, ORANGE, SKY, Canvas, Draw
from tracer.table import Table

WIDTH = 72
BARS = 60  # layers that a picture can show apart


def answer(options: argparse.Namespace) -> Answer:
    job, rate, network = job_of(options), bytes_per_second(options.bandwidth), network_of(options)
    if options.policy == "all":
        return _all(job, rate, network)
    line = predict(job, rate, options.policy, **network)
    table = Table(
        f"{options.policy} at {as_rate(rate)}: milliseconds since backward began",
        {
            "layer": list(line.names),
            "bytes": job.bytes.astype(np.int64),
            "bp_end_ms": line.bp_end * 1e3,
            "push_start_ms": line.push_start * 1e3,
            "push_end_ms": line.push_end * 1e3,
            "pull_end_ms": line.pull_end * 1e3,
            "fp_end_ms": line.fp_end * 1e3,
            "wait_ms": waits(job, line) * 1e3,
        },
    )
    head = (
        f"iteration {line.iteration_s * 1e3:.3f} ms, computation {line.oracle_s * 1e3:.3f} ms, "
        f"speed {line.speed:.3f} of a job that never waits"
    )
    return Answer(
        table=table,
        draw=_bars(job, line),
        lines=[head, *lanes(job, line)],
        values={
            "policy": options.policy,
            "bandwidth_bytes_per_s": rate,
            "iteration_s": line.iteration_s,
            "oracle_s": line.oracle_s,
            "speed": line.speed,
        },
        rows=options.rows,
    )


def _all(job: Job, rate: float, network: dict[str, object]) -> Answer:
    lines = {policy: predict(job, rate, policy, **network) for policy in POLICIES}
    table = Table(
        f"one iteration at {as_rate(rate)}",
        {
            "policy": list(lines),
            "iteration_ms": [line.iteration_s * 1e3 for line in lines.values()],
            "speed": [line.speed for line in lines.values()],
            "waits_ms": [
                max(line.iteration_s - line.oracle_s, 0.0) * 1e3 for line in lines.values()
            ],
        },
    )

    def draw(canvas: Canvas) -> None:
        (axes,) = canvas.axes(0.35 * len(lines) + 0.8)
        axes.barh(list(lines), table["iteration_ms"], color=BLUE)
        axes.invert_yaxis()
        axes.set_xlabel("iteration (ms)")

    return Answer(table, draw, values={"bandwidth_bytes_per_s": rate})


def waits(job: Job, line: Timeline) -> Array:
    """How long each layer's forward pass kept the worker idle."""
    before = np.append(line.bp_end[0], line.fp_end[:-1])
    idle: Array = np.maximum(line.fp_end - job.after_pull_s - before, 0.0)
    return idle


def lanes(job: Job, line: Timeline) -> list[str]:
    """The iteration as three lines of characters: what is busy when."""
    end = max(line.iteration_s, 1e-12)
    began = line.fp_end - job.after_pull_s
    busy = {
        "backward": [(0.0, float(line.bp_end[0]))],
        "network": [*zip(line.push_start, np.maximum(line.push_end, line.pull_end))],
        "forward": [*zip(began, line.fp_end)],
    }
    drawn = []
    for name, spans in busy.items():
        row = [" "] * WIDTH
        for first, last in spans:
            if last > first:
                begin = int(first / end * WIDTH)
                for place in range(begin, max(begin + 1, round(last / end * WIDTH))):
                    row[min(place, WIDTH - 1)] = "#"
        drawn.append(f"{name:>9} |{''.join(row)}|")
    return drawn


def _bars(job: Job, line: Timeline) -> Draw:
    """A row a layer: backward, on the way, forward. Of many layers the largest."""
    chosen = np.sort(np.argsort(-job.bytes, kind="stable")[:BARS])
    began = line.fp_end - job.after_pull_s
    backward = np.append(line.bp_end[1:], 0.0)

    def draw(canvas: Canvas) -> None:
        (axes,) = canvas.axes(0.16 * len(chosen) + 1.2)
        rows = range(len(chosen))
        for label, first, last, colour in (
            ("backward", backward, line.bp_end, BLUE),
            ("ready, not sent", line.bp_end, line.push_start, SKY),
            ("push and pull", line.push_start, line.pull_end, ORANGE),
            ("forward", began, line.fp_end, GREEN),
        ):
            width = np.maximum(last - first, 0.0)[chosen] * 1e3
            axes.barh(rows, width, left=first[chosen] * 1e3, color=colour, label=label)
        axes.set_yticks(list(rows), [line.names[layer] for layer in chosen], fontsize=6)
        axes.invert_yaxis()
        title = f"{line.policy} at {as_rate(line.bandwidth)}"
        axes.set(xlabel="ms since backward began", title=title)
        axes.legend(loc="upper right")

    return draw
