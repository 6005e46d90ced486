"""Who comes last, how often, and what does it cost?

For each key and iteration the last worker's push makes all others wait. Its cost is how much
earlier the server would have had everything, had it come together with the last but one.
"""

from __future__ import annotations

import numpy as np

from tracer.grouping import group
from tracer.round_trip import RoundTrips
from tracer.table import Section, Table

NAME, TITLE = "stragglers", "Stragglers"
QUESTION = "Who comes last, how often, and what does it cost?"
NOTE = "Cost: time between the last push of a key and the one before it. Ties count for nobody."


def last_ones(table: RoundTrips) -> Table:
    """Who was last, per iteration, key and server. Worker -1: several at once."""
    rows = table.take(table.has(table.push_is_in))
    groups = group(rows.iteration, rows.key, rows.server)
    time = rows.times[rows.push_is_in]
    order = groups.sorted_rows(time)
    last = groups.last
    several = groups.count() > 1
    final, second = order[last], order[np.maximum(last - 1, 0)]
    cost = np.where(several, time[final] - time[second], 0)
    return Table(
        "Last worker of each key and iteration",
        {
            **groups.named("iteration", "key", "server", rows=several),
            "worker": np.where(cost > 0, rows.worker[final], -1)[several],
            "cost_us": cost[several],
        },
        NOTE,
    )


def per_worker(found: Table, workers: int) -> Table:
    worker, cost = found["worker"], found["cost_us"]
    times = [int((worker == w).sum()) for w in range(workers)]
    total = [int(cost[worker == w].sum()) for w in range(workers)]
    most = [int(cost[worker == w].max(initial=0)) for w in range(workers)]
    return Table(
        "Stragglers",
        {
            "worker": list(range(workers)),
            "times_last": times,
            "share": [count / max(len(worker), 1) for count in times],
            "cost_us": total,
            "mean_cost_us": [sum_ / max(n, 1) for sum_, n in zip(total, times)],
            "max_cost_us": most,
        },
        NOTE,
    )


def per_iteration(found: Table) -> Table:
    """The dearest key of each iteration."""
    groups = group(found["iteration"])
    dearest = groups.row_of_most(found["cost_us"])
    return Table(
        "Longest wait of each iteration",
        {
            **groups.named("iteration"),
            **{name: found[name][dearest] for name in ("worker", "key", "cost_us")},
        },
        NOTE,
    )


def section(table: RoundTrips) -> Section:
    found = last_ones(table)
    workers = per_worker(found, table.workers)
    return Section(NAME, TITLE, QUESTION, [workers, per_iteration(found)], {"workers": workers})
