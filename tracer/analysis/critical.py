"""Which chain of events, across all nodes, makes an iteration as long as it is?

From the last Pull_Recv of an iteration back to the last one of the iteration before: each step goes
to what the event had to wait for. Where a server waited for all workers that is the last worker's
push, so the path changes nodes. The segments add up to the time between the two, at the worker in
which the path begins.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer import round_trip as rt
from tracer.format.record import ASYNCHRONOUS, MERCURY, STAGES, Array, Bools, Ints
from tracer.grouping import group
from tracer.hosts import HostRows
from tracer.round_trip import RoundTrips
from tracer.table import Section, Table

NAME, TITLE = "critical", "Critical path"
QUESTION = "Which chain of events, across all nodes, makes an iteration as long as it is?"

# From an iteration's end backwards: what a segment is, where it ends, where it begins, and to which
# row it goes: the same, the worker whose push was last, or the tensor's piece confirmed last.
SAME, LAST_WORKER, LAST_PIECE = range(3)
STEPS: dict[str, tuple[tuple[str, int, int, int], ...]] = {
    "zmq": (
        ("parameters on the wire", rt.W_PULL_RECV, rt.S_PULL_SEND, SAME),
        ("search", rt.S_PULL_SEND, rt.S_PULL_RECV, SAME),
        ("request on the wire", rt.S_PULL_RECV, rt.W_PULL_SEND, SAME),
        ("worker's turnaround", rt.W_PULL_SEND, rt.W_PUSH_RECV, LAST_PIECE),
        ("confirmation on the wire", rt.W_PUSH_RECV, rt.S_PUSH_SEND, SAME),
        ("update", rt.S_PUSH_SEND, rt.S_PUSH_RECV, LAST_WORKER),
        ("gradient on the wire", rt.S_PUSH_RECV, rt.W_PUSH_SEND, SAME),
    ),
    MERCURY: (
        ("last sum on the wire", rt.W_PULL_RECV, rt.S_PULL_SEND, SAME),
        ("update and sending sums", rt.S_PULL_SEND, rt.S_PUSH_SEND, LAST_WORKER),
        ("last packet on the wire", rt.S_PUSH_SEND, rt.W_PUSH_RECV, SAME),
        ("sending packets", rt.W_PUSH_RECV, rt.W_PUSH_SEND, SAME),
    ),
}
# Where the sum was asked for ahead, right behind the push, nothing waits for the confirmation.
AHEAD = (
    ("parameters on the wire", rt.W_PULL_RECV, rt.S_PULL_SEND, SAME),
    ("search", rt.S_PULL_SEND, rt.S_PUSH_SEND, SAME),
    ("update", rt.S_PUSH_SEND, rt.S_PUSH_RECV, LAST_WORKER),
    ("gradient on the wire", rt.S_PUSH_RECV, rt.W_PUSH_SEND, SAME),
)
COMPUTATION = "computation"
# Where workers share a host, a sum comes to most of them by way of their leader, and a leader's
# copy holds the others': the path goes through both hops.
WITHIN = "sum within the host", "last packet within the host"


def path(table: RoundTrips) -> Table:
    """All segments of all iterations' paths, latest first within an iteration."""
    rows = table.take(table.has(*range(8)))
    parts: list[dict[str, Array]] = []
    if len(rows):
        goes_to = _goes_to(rows)
        last = group(rows.iteration).row_of_most(rows.times[rt.W_PULL_RECV])
        ahead = (rows.in_turn().times[rt.W_PULL_SEND] != rows.times[rt.W_PULL_SEND])[last]
        within = HostRows(rows) if rows.leaders else None
        if within is not None:
            last = _to_leaders(rows, within, last, parts)
        for steps, at in ((STEPS[rows.mode], last[~ahead]), (AHEAD, last[ahead])):
            for what, end, begin, where in steps:
                if within is not None and begin == rt.W_PUSH_SEND:
                    at = _to_others(rows, within, at, what, parts)
                ends = rows.times[end][at]
                at = goes_to[where][at]
                parts.append(_segment(rows, at, what, rows.times[begin][at], ends, begin < STAGES))
            parts.append(_computation(rows, at))
    names = ("iteration", "what", "node", "key", "begin_us", "us")
    columns: dict[str, Any] = {
        name: np.concatenate([part[name] for part in parts]) if parts else np.zeros(0, np.int64)
        for name in names
    }
    order = np.lexsort((-columns["begin_us"], columns["iteration"]))
    return Table("Critical path", {name: values[order] for name, values in columns.items()})


def _to_leaders(
    rows: RoundTrips, within: HostRows, at: Ints, parts: list[dict[str, Array]]
) -> Ints:
    """Who has the sum from its leader waited for that one's."""
    to = within.leaders_row(at)
    hops = within.at_host[at] & (to >= 0)
    times = rows.times[rt.W_PULL_RECV]
    parts.append(_segment(rows, to[hops], WITHIN[0], times[to[hops]], times[at[hops]], True))
    return np.where(hops, to, at)


def _to_others(
    rows: RoundTrips, within: HostRows, at: Ints, what: str, parts: list[dict[str, Array]]
) -> Ints:
    """A leader that had to wait for another worker's packets sent its last ones after that."""
    to = within.others_row(at)
    there = rows.times[rt.S_PUSH_SEND][to]
    hops = (to >= 0) & (there > rows.times[rt.W_PUSH_SEND][at])
    here, to = at[hops], to[hops]
    parts.append(_segment(rows, here, what, there[hops], rows.times[rt.W_PUSH_RECV][here], True))
    left = rows.times[rt.W_PUSH_RECV][to]
    parts.append(_segment(rows, to, WITHIN[1], left, there[hops], True))
    out = at.copy()
    out[hops] = to
    return out


def _goes_to(rows: RoundTrips) -> tuple[Ints, Ints, Ints]:
    """For each row, the row that each kind of step goes to."""
    same = np.arange(len(rows))
    pieces = group(rows.iteration, rows.key, rows.worker)
    last_piece = pieces.row_of_most(rows.times[rt.W_PUSH_RECV])[pieces.index]
    if rows.training == ASYNCHRONOUS:
        return same, same, last_piece
    workers = group(rows.iteration, rows.key, rows.server)
    return same, workers.row_of_most(rows.times[rows.push_is_in])[workers.index], last_piece


def _segment(
    rows: RoundTrips, at: Ints, what: str, begin: Ints, end: Ints, on_worker: bool
) -> dict[str, Array]:
    node = [
        f"worker {w}" if on_worker else f"server {s}"
        for w, s in zip(rows.worker[at].tolist(), rows.server[at].tolist())
    ]
    return {
        "iteration": rows.iteration[at],
        "what": np.full(len(at), what, dtype=object),
        "node": np.asarray(node, dtype=object),
        "key": rows.key[at],
        "begin_us": begin,
        "us": end - begin,
    }


def _computation(rows: RoundTrips, at: Ints) -> dict[str, Array]:
    """From the worker's last Pull_Recv of the iteration before to the push of the path."""
    groups = group(rows.worker, rows.iteration)
    last = groups.most(rows.times[rt.W_PULL_RECV])
    width = int(rows.iteration.max()) + 2
    known = groups.keys[0] * width + groups.keys[1]
    wanted = rows.worker[at] * width + rows.iteration[at] - 1
    place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    there: Bools = (known[place] == wanted) & (rows.iteration[at] > 0)
    push = rows.times[rt.W_PUSH_SEND][at]
    return _segment(rows, at[there], COMPUTATION, last[place][there], push[there], True)


def per_kind(found: Table) -> Table:
    spent = {name: found["us"][found["what"] == name] for name in sorted(set(found["what"]))}
    ordered = sorted(spent, key=lambda name: -int(spent[name].sum()))
    sums = np.asarray([spent[name].sum() for name in ordered], np.int64)
    counts = np.asarray([len(spent[name]) for name in ordered], np.int64)
    shares = sums / max(int(sums.sum()), 1)
    return Table(
        "What the critical path consists of",
        {"what": ordered, "us": sums, "share": shares, "mean_us": sums / counts},
    )


def per_node(found: Table) -> Table:
    names = sorted(set(found["node"].tolist()))
    sums = [int(found["us"][found["node"] == name].sum()) for name in names]
    total = max(sum(sums), 1)
    return Table(
        "Nodes on the critical path",
        {"node": names, "us": sums, "share": [value / total for value in sums]},
        "A segment belongs to the node where it begins.",
    )


def per_key(found: Table, table: RoundTrips) -> Table:
    keys = np.unique(found["key"])
    iterations = max(len(np.unique(found["iteration"])), 1)
    ends = np.asarray(
        [len(np.unique(found["iteration"][found["key"] == key])) for key in keys], np.int64
    )
    order = np.argsort(-ends, kind="stable")
    return Table(
        "Keys on the critical path",
        {
            "key": keys[order],
            "name": table.names(keys[order]),
            "iterations": ends[order],
            "share": ends[order] / iterations,
        },
    )


def section(table: RoundTrips) -> Section:
    found = path(table)
    kinds = per_kind(found)
    tables = [kinds, per_node(found), per_key(found, table)]
    return Section(NAME, TITLE, QUESTION, tables, {"kinds": kinds})
