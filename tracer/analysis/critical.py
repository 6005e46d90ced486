"""Which chain of events, across all nodes, makes an iteration as long as it is?

From the last Pull_Recv of an iteration back to the last one of the iteration before: each step goes
to what the event had to wait for. Where a server waited for all workers that is the last worker's
push, so the path changes nodes. The segments add up to the time between the two, at the worker in
which the path begins.
"""

from __future__ import annotations

from dataclasses import dataclass
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
SAME, LAST_WORKER, LAST_PIECE, LAST_BEGUN = range(4)
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
        # And then the packets before it (_packets).
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
# Packets of who is ahead are held back until all workers have begun: from there on they are sent,
# and before that the path is with the worker that began last.
SENDING, FIRST_PACKET = "sending packets", "first packet on the wire"
# Where workers share a host, a sum comes to most of them by way of their leader, and a leader's
# copy holds the others': the path goes through both hops.
WITHIN = "sum within the host", "first packet within the host"


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
                ends = rows.times[end][at]
                at = goes_to[where][at]
                parts.append(_segment(rows, at, what, rows.times[begin][at], ends, begin < STAGES))
            if rows.by_packets:
                at = _packets(rows, within, at, goes_to[LAST_BEGUN][at], parts)
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


@dataclass
class _Sending:
    """The way from the last packets sent back to the pushes that they had to wait for."""

    rows: RoundTrips
    at: Ints
    what: Array
    end: Ints

    def follow(self, to: Ints, way: str) -> dict[str, Array]:
        """To those that came while it was sent: only from then on did it not wait for them."""
        came, pushed = self.rows.times[rt.S_PUSH_RECV][to], self.rows.times[rt.W_PUSH_SEND][self.at]
        hops = (to >= 0) & (to != self.at) & (came > pushed) & (came <= self.end)
        part = _segment(self.rows, self.at[hops], self.what[hops], came[hops], self.end[hops], True)
        self.at, self.end = np.where(hops, to, self.at), np.where(hops, came, self.end)
        self.what = np.where(hops, way, self.what)
        return part


def _packets(
    rows: RoundTrips, within: HostRows | None, at: Ints, last: Ints, parts: list[dict[str, Array]]
) -> Ints:
    """`last` began last of the same sums."""
    way = _Sending(rows, at, np.full(len(at), SENDING, object), rows.times[rt.W_PUSH_RECV][at])
    parts.append(way.follow(last, FIRST_PACKET))
    if within is not None:
        parts.append(way.follow(within.others_row(way.at), WITHIN[1]))
    pushed = rows.times[rt.W_PUSH_SEND][way.at]
    parts.append(_segment(rows, way.at, way.what, pushed, way.end, True))
    return way.at


def _goes_to(rows: RoundTrips) -> tuple[Ints, Ints, Ints, Ints]:
    """For each row, the row that each kind of step goes to."""
    same = np.arange(len(rows))
    pieces = group(rows.iteration, rows.key, rows.worker)
    last_piece = pieces.row_of_most(rows.times[rt.W_PUSH_RECV])[pieces.index]
    if rows.training == ASYNCHRONOUS:
        return same, same, last_piece, same
    workers = group(rows.iteration, rows.key, rows.server)
    last_in, last_begun = (
        workers.row_of_most(rows.times[instant])[workers.index]
        for instant in (rows.push_is_in, rt.S_PUSH_RECV)
    )
    return same, last_in, last_piece, last_begun


def _segment(
    rows: RoundTrips, at: Ints, what: str | Array, begin: Ints, end: Ints, on_worker: bool
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
