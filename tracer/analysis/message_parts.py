"""Of what does the life of a message consist?

From Push_Send to Pull_Recv of one key, worker and server, in five parts that add up to the whole:

sender queue   the push waits behind earlier messages of its link: until the one before it arrived
wire           the rest of its way
peers          the server has it, but not the other workers' gradients
server queue   the server has all it needs and has not answered: update and search
answer         everything on the way back: confirmation, request, parameters

Where tensors travel as packets: handed over to last packet sent; last packet's way; waiting for the
others' last packets; from then to the last sum sent; its way back. From a push's first packet in
until the last worker's is, a server holds back all but a window of it: that is of the peers, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer import round_trip as rt
from tracer.analysis.summary import summaries
from tracer.format.record import ASYNCHRONOUS, Ints
from tracer.grouping import group
from tracer.round_trip import RoundTrips
from tracer.table import Section, Table

NAME, TITLE = "life", "Life of a message"
QUESTION = "What makes up the time from a push to its answer?"
PARTS = ("sender_queue", "wire", "peers", "server_queue", "answer")
NOTE = "The five parts add up to the time from Push_Send_Worker to Pull_Recv_Worker."


def queued_until(link: Ints, sent: Ints, arrived: Ints) -> Ints:
    """When each message's link was free for it: the arrival of the one before, or its sending.

    Links are in order, so the one before is the one that was sent before; with equal times the one
    that arrived before.
    """
    order = np.lexsort((arrived, sent, link))
    before = np.full(len(order), rt.MISSING, np.int64)
    same = link[order][1:] == link[order][:-1]
    before[1:] = np.where(same, arrived[order][:-1], rt.MISSING)
    until = np.empty(len(order), np.int64)
    until[order] = before
    return np.clip(until, sent, np.maximum(arrived, sent))


def parts_of_each(table: RoundTrips) -> Table:
    rows = table.take(
        table.has(
            rt.W_PUSH_SEND,
            rt.W_PULL_RECV,
            rt.S_PUSH_RECV,
            rt.S_PUSH_SEND,
            rt.S_PULL_RECV,
            rt.S_PULL_SEND,
        )
    ).in_turn()
    t = rows.times
    arrived = t[rows.push_is_in]
    complete, begun = arrived, t[rt.S_PUSH_RECV]
    if rows.training != ASYNCHRONOUS:
        groups = group(rows.iteration, rows.key, rows.server)
        complete, begun = (groups.most(instant)[groups.index] for instant in (complete, begun))
    peers = complete - arrived
    if rows.by_packets:
        sent = np.minimum(np.where(rows.has(rt.W_PUSH_RECV), t[rt.W_PUSH_RECV], arrived), arrived)
        first = np.maximum(t[rt.S_PUSH_RECV], t[rt.W_PUSH_SEND])
        held = np.maximum(np.minimum(begun, sent) - first, 0)
        queue, at_server = sent - t[rt.W_PUSH_SEND] - held, t[rt.S_PULL_SEND] - complete
        wire, peers = arrived - sent, peers + held
    else:
        # Pull requests share the link with pushes, but are too short to hold one up for long.
        link = rows.worker * rows.servers + rows.server
        until = queued_until(link, t[rt.W_PUSH_SEND], arrived)
        queue, wire = until - t[rt.W_PUSH_SEND], arrived - until
        at_server = (t[rt.S_PUSH_SEND] - complete) + (t[rt.S_PULL_SEND] - t[rt.S_PULL_RECV])
    whole = t[rt.W_PULL_RECV] - t[rt.W_PUSH_SEND]
    return Table(
        "Life of each message",
        {
            **rows.columns("iteration", "key", "worker", "server"),
            "sender_queue_us": queue,
            "wire_us": wire,
            "peers_us": peers,
            "server_queue_us": at_server,
            "answer_us": whole - queue - wire - peers - at_server,
            "whole_us": whole,
        },
        NOTE,
    )


def per_key(found: Table, table: RoundTrips) -> Table:
    groups = group(found["key"])
    count = groups.count()
    columns: dict[str, Any] = {"key": groups.keys[0], "name": table.names(groups.keys[0])}
    for part in (*PARTS, "whole"):
        columns[f"{part}_us"] = groups.total(found[f"{part}_us"]) / count
    return Table("Mean life of a message, per key", columns, NOTE)


def section(table: RoundTrips) -> Section:
    found = parts_of_each(table)
    parts = summaries(
        "Parts of a message's life", [(p, found[f"{p}_us"]) for p in (*PARTS, "whole")], NOTE
    )
    keys = per_key(found, table)
    return Section(NAME, TITLE, QUESTION, [parts, keys], {"parts": keys})
