"""Who comes last, how often, and what does it cost?

For each key and iteration the last worker's push makes all others wait. Its cost is how much
earlier the server would have had everything, had it come together with the last but one. A push
comes with its first packet: the last ones of workers that were ahead are held back until then.
Where workers share a host, the leader's push comes when all of the host have, so the last of them
is charged. In asynchronous training nobody waits for others.
"""

from __future__ import annotations

import numpy as np

from tracer.format.record import ASYNCHRONOUS
from tracer.grouping import group
from tracer.hosts import HostRows
from tracer.round_trip import S_PUSH_RECV, RoundTrips
from tracer.table import Section, Table

NAME, TITLE = "stragglers", "Stragglers"
QUESTION = "Who comes last, how often, and what does it cost?"
NOTE = (
    "Cost: time between the last push of a key and the one before it; of packets, the first of "
    "each push. Ties count for nobody."
)


def last_ones(table: RoundTrips) -> Table:
    """Who was last, per iteration, key and server. Worker -1: several at once."""
    together = table.training != ASYNCHRONOUS
    rows = table.take(table.has(S_PUSH_RECV) & together)
    hosts = HostRows(rows)
    away = np.flatnonzero(~hosts.at_host)  # a host's sum is a part of theirs
    groups = group(rows.iteration[away], rows.key[away], rows.server[away])
    last, by = groups.lead(rows.times[S_PUSH_RECV][away])
    other, by_in_host = hosts.last_within(away[last])
    least, most = np.minimum(by, by_in_host), np.maximum(by, by_in_host)
    known = most >= 0
    # Had it come with the last but one of its host, the host may have been last still.
    cost = np.where(least >= 0, least, most)
    worker = np.where(other >= 0, other, rows.worker[away[last]])
    return Table(
        "Last worker of each key and iteration",
        {
            **groups.named("iteration", "key", "server", rows=known),
            "worker": np.where(cost > 0, worker, -1)[known],
            "cost_us": cost[known],
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
    workers = per_worker(found, table.workers if table.training != ASYNCHRONOUS else 0)
    return Section(NAME, TITLE, QUESTION, [workers, per_iteration(found)], {"workers": workers})
