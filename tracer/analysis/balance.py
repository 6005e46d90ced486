"""Do the servers share the work evenly, and which keys are hot?

A server's share is of the bytes it takes in and sends out. A key is hot by its bytes, and by the
time during which a server was at it: from its last push to the first confirmation, and, unless it
travels in packets, while answering its pulls.
"""

from __future__ import annotations

import numpy as np

from tracer.analysis.overheads import search, update
from tracer.format.record import STAGES, Ints
from tracer.grouping import group
from tracer.round_trip import MISSING, RoundTrips
from tracer.table import Section, Table

NAME, TITLE = "balance", "Server balance and hot keys"
QUESTION = "Do the servers share the work evenly, and which keys are hot?"


def servers(table: RoundTrips) -> Table:
    # Without a worker's file, some servers may be unknown, which is not idle.
    told = (table.times[:STAGES] != MISSING).any()
    every = np.arange(table.servers) if told else np.unique(table.server)

    def sums(values: Ints) -> Ints:
        total = np.bincount(table.server, values, minlength=table.servers)
        found: Ints = total.astype(np.int64)[every]
        return found

    pushed, pulled = sums(table.push_bytes), sums(table.pull_bytes)
    both = pushed + pulled
    mean = both.mean() if len(both) else 0.0
    keys = [len(np.unique(table.key[table.server == s])) for s in every.tolist()]
    return Table(
        "Load of each server",
        {
            "server": every,
            "keys": keys,
            "push_bytes": pushed,
            "pull_bytes": pulled,
            "share": both / max(int(both.sum()), 1),
            "load_to_mean": both / mean if mean else np.zeros(len(both)),
        },
        f"The busiest server has {both.max(initial=0) / mean:.2f} times the mean."
        if mean
        else "No bytes were moved.",
    )


def keys(table: RoundTrips) -> Table:
    """Hottest first."""
    groups = group(table.key)
    moved = groups.total(table.push_bytes + table.pull_bytes)
    busy = np.zeros(len(groups), np.int64)
    # In packets, a search is the sending of sums.
    for samples in [update(table)] if table.by_packets else [update(table), search(table)]:
        found = samples.by_key
        place = np.searchsorted(groups.keys[0], found["key"])
        np.add.at(busy, place, np.maximum(found["us"], 0))
    order = np.lexsort((groups.keys[0], -moved))
    return Table(
        "Keys, hottest first",
        {
            "key": groups.keys[0][order],
            "name": table.names(groups.keys[0][order]),
            "servers": [
                len(np.unique(table.server[table.key == k])) for k in groups.keys[0][order]
            ],
            "bytes": moved[order],
            "share": moved[order] / max(int(moved.sum()), 1),
            "server_us": busy[order],
        },
        f"server_us: time in update{'' if table.by_packets else ' and search'}.",
    )


def section(table: RoundTrips) -> Section:
    load = servers(table)
    return Section(NAME, TITLE, QUESTION, [load, keys(table)], {"servers": load})
