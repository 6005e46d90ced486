"""Which communication does a step wait for, and for which layer?

After its last Push_Send a worker has nothing left to compute but waits for parameters. The next
forward pass takes layers in order of urgency. Each key is charged with the time by which it moves
the moment at which everything up to it has come; the charges of a step add up to the time from its
last Push_Send to its last Pull_Recv.
"""

from __future__ import annotations

import numpy as np

from tracer.analysis.summary import per_key, summaries
from tracer.grouping import group
from tracer.round_trip import W_PULL_RECV, W_PUSH_SEND, RoundTrips
from tracer.table import Section, Table

NAME, TITLE = "exposed", "Exposed communication"
QUESTION = "Which communication does a step wait for, and for which layer?"
NOTE = "Time after the last Push_Send, charged to the keys that the next forward pass waits for."


def per_layer(table: RoundTrips) -> Table:
    rows = table.take(table.has(W_PUSH_SEND, W_PULL_RECV))
    pieces = group(rows.worker, rows.iteration, rows.key)
    arrival = pieces.most(rows.times[W_PULL_RECV])
    pushed = pieces.most(rows.times[W_PUSH_SEND])
    priority = pieces.least(rows.priority())
    worker, iteration, key = pieces.keys
    steps = group(worker, iteration)
    charge = np.zeros(len(key), np.int64)
    order = np.lexsort((key, -priority, steps.index))
    # One step's arrivals are ranked among themselves: a running maximum that starts anew.
    arrivals = np.maximum(arrival, steps.most(pushed)[steps.index])[order]
    ready = steps.most(pushed)[steps.index][order]
    step = steps.index[order]
    moments, rank = np.unique(arrivals, return_inverse=True)
    running = moments[np.maximum.accumulate(step * len(moments) + rank) - step * len(moments)]
    before = np.concatenate(([0], running[:-1]))
    first = np.concatenate(([True], step[1:] != step[:-1])) if len(step) else np.zeros(0, bool)
    charge[order] = running - np.where(first, ready, before)
    return Table(
        "Exposed communication per step and layer",
        {**pieces.named("worker", "iteration", "key"), "us": charge},
        NOTE,
    )


def per_step(layers: Table) -> Table:
    groups = group(layers["worker"], layers["iteration"])
    return Table(
        "Exposed communication per step",
        {**groups.named("worker", "iteration"), "us": groups.total(layers["us"])},
    )


def section(table: RoundTrips) -> Section:
    layers = per_layer(table)
    steps = per_step(layers)
    tables = [
        summaries("Exposed communication of a step", [("all workers", steps["us"])], NOTE),
        per_key("Exposed communication per layer", layers, table),
        steps,
    ]
    return Section(NAME, TITLE, QUESTION, tables, {"layers": tables[1]})
