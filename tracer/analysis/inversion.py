"""How much less urgent data did urgent data wait for?

For each message: the bytes of less urgent messages that arrived over its link while it was on its
way. With perfect priorities there are none but what was on the wire already. Pushes and answers
count alike; a link is a pair of nodes and a direction.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer import round_trip as rt
from tracer.format.record import Ints
from tracer.grouping import group
from tracer.round_trip import RoundTrips
from tracer.table import Section, Table

NAME, TITLE = "inversion", "Priority inversion"
QUESTION = "How much less urgent data did urgent data wait for?"
NOTE = "Bytes of less urgent messages that arrived on the same link while a message was on its way."


def inverted(table: RoundTrips) -> Table:
    """Each push and each answer, with the bytes that went before it."""
    parts: list[dict[str, Any]] = []
    for direction, begin, end, sizes in (
        ("push", rt.W_PUSH_SEND, table.push_is_in, table.push_bytes),
        ("answer", rt.S_PULL_SEND, rt.W_PULL_RECV, table.pull_bytes),
    ):
        known = table.has(begin, end)
        rows = table.take(known)
        link = rows.worker * rows.servers + rows.server
        size = sizes[known]
        behind = _bytes_before(link, rows.priority(), size, rows.times[begin], rows.times[end])
        parts.append(
            {
                "direction": [direction] * len(rows),
                **rows.columns("iteration", "key", "worker", "server"),
                "bytes": size,
                "inverted_bytes": behind,
            }
        )
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return Table("Less urgent bytes that each message waited for", columns, NOTE)


def _bytes_before(link: Ints, priority: Ints, size: Ints, begin: Ints, end: Ints) -> Ints:
    """Sum of the sizes of less urgent messages of the same link with an end in (begin, end]."""
    out = np.zeros(len(link), np.int64)
    if not len(link):
        return out
    base = int(min(begin.min(), end.min()))
    span = int(max(begin.max(), end.max())) - base + 1
    arrival = link * span + (end - base)
    order = np.argsort(arrival, kind="stable")
    sorted_arrival = arrival[order]
    since = np.searchsorted(sorted_arrival, link * span + (begin - base), side="right")
    until = np.searchsorted(sorted_arrival, arrival, side="right")
    for level in np.unique(priority).tolist():
        mine = np.flatnonzero(priority == level)
        less = np.where(priority[order] < level, size[order], 0)
        so_far = np.concatenate(([0], np.cumsum(less)))
        out[mine] = so_far[np.maximum(until[mine], since[mine])] - so_far[since[mine]]
    return out


def per_key(found: Table, table: RoundTrips) -> Table:
    groups = group(found["key"])
    count = groups.count()
    waited = groups.total(found["inverted_bytes"])
    priority = np.asarray([table.keys[int(key)].priority for key in groups.keys[0]], np.int64)
    order = np.lexsort((groups.keys[0], -priority))
    return Table(
        "Priority inversion per key, most urgent first",
        {
            "key": groups.keys[0][order],
            "name": table.names(groups.keys[0][order]),
            "priority": priority[order],
            "messages": count[order],
            "held_up": groups.total((found["inverted_bytes"] > 0).astype(np.int64))[order],
            "inverted_bytes": waited[order],
            "mean_bytes": (waited / count)[order],
            "max_bytes": groups.most(found["inverted_bytes"])[order],
        },
        NOTE,
    )


def per_iteration(found: Table) -> Table:
    groups = group(found["iteration"])
    return Table(
        "Priority inversion per iteration",
        {**groups.named("iteration"), "inverted_bytes": groups.total(found["inverted_bytes"])},
        NOTE,
    )


def section(table: RoundTrips) -> Section:
    found = inverted(table)
    keys = per_key(found, table)
    return Section(NAME, TITLE, QUESTION, [keys, per_iteration(found)], {"keys": keys})
