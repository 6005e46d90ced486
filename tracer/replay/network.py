"""The network that a trace was captured on, as far as its messages tell."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tracer import round_trip as rt
from tracer.format.record import Ints
from tracer.grouping import group
from tracer.round_trip import RoundTrips

Floats = npt.NDArray[np.float64]
MOST = 0.5  # of the bytes
SAME = 0.02  # of the time
FASTEST = 1e12  # bytes per second: bytes took no time that a trace can show


@dataclass(frozen=True)
class Network:
    bandwidth: float  # bytes per second of a node's link, each way
    connection: float  # of one worker with one server: less where a link was not what limited
    latency_s: float  # one way


@dataclass(frozen=True)
class Pushes:
    """When each was on its way, in microseconds. A connection carries one after another, unless
    they are cut into packets."""

    by_packets: bool
    iteration: Ints
    worker: Ints
    server: Ints
    handed: Floats  # over to the transport
    begin: Floats
    end: Floats
    size: Floats


def estimate(table: RoundTrips) -> Network:
    """Latency from the smallest messages at their fastest, rates from the pushes.

    While anything is on its way to or from a node, the node's link is busy, so the bytes of such a
    time tell its rate: that of the median byte counts, and of many nodes the fastest one's, because
    the others' links may not have been the narrow ones. Answers tell less: they may have to wait
    for other workers while they are on their way.

    Packets of one tensor overtake those of another, so a tensor may be on its way while nothing of
    it is. There the time counts from when all pushes of the iteration have been handed over, if
    most bytes are carried after that.

    Connections that are as fast alone as beside others do not share a link. Then the median byte of
    a connection tells its rate, and no link of a node is ever full.
    """
    latency_us = max(0.0, _latency_us(table))
    pushes = _pushes(table, latency_us)
    nodes = ((pushes.worker, table.workers), (pushes.server, table.servers))
    links = [_link_rate(pushes, node == rank) for node, count in nodes for rank in range(count)]
    link = connection = max(links, default=0.0)
    took = pushes.end - pushes.begin
    if len(took):
        alone = _median(pushes.size / took, pushes.size)
        if np.abs(took - pushes.size / alone).sum() < SAME * took.sum():
            link, connection = alone * max(table.workers, table.servers), alone
    link, connection = (min(FASTEST, rate * 1e6) or FASTEST for rate in (link, connection))
    return Network(link, connection, latency_us / 1e6)


def _pushes(table: RoundTrips, latency_us: float) -> Pushes:
    received = table.push_is_in
    known = np.flatnonzero(table.has(rt.W_PUSH_SEND, rt.S_PUSH_RECV, received))
    rows = table.take(known[table.push_bytes[known] > 0])
    handed, first, end = (
        rows.times[when].astype(np.float64) for when in (rt.W_PUSH_SEND, rt.S_PUSH_RECV, received)
    )
    if rows.by_packets:
        begin = first
    else:
        end -= latency_us
        begin = handed.copy()
        connection = rows.worker * rows.servers + rows.server
        order = np.lexsort((end, connection))
        same = np.diff(connection[order]) == 0
        begin[order[1:][same]] = np.maximum(begin[order[1:]], end[order[:-1]])[same]
    # At least for the microsecond that a trace can tell.
    end = np.maximum(end, begin + 1.0)
    size = rows.push_bytes.astype(np.float64)
    nodes = (rows.by_packets, rows.iteration, rows.worker, rows.server)
    return Pushes(*nodes, handed, begin, end, size)


def _link_rate(pushes: Pushes, rows: npt.NDArray[np.bool_]) -> float:
    """Bytes per microsecond of one node, at the time of the median byte."""
    size = pushes.size[rows]
    if not len(size):
        return 0.0
    begin, end = pushes.begin[rows], pushes.end[rows]
    if pushes.by_packets:
        turns = group(pushes.iteration[rows])
        all_handed = turns.most(pushes.handed[rows])
        after = np.maximum(end - np.maximum(begin, all_handed[turns.index]), 0.0)
        carried = turns.total(after / (end - begin) * size)
        if carried.sum() > size.sum() * MOST:
            return _median(carried / np.maximum(turns.most(end) - all_handed, 1.0), carried)
    order = np.argsort(begin, kind="stable")
    begin, busy_until = begin[order], np.maximum.accumulate(end[order])
    first_of = np.flatnonzero(np.append(True, begin[1:] > busy_until[:-1]))
    last_of = np.append(first_of[1:], len(order)) - 1
    carried = np.add.reduceat(size[order], first_of)
    return _median(carried / (busy_until[last_of] - begin[first_of]), carried)


def _median(values: Floats, weights: Floats) -> float:
    order = np.argsort(values)
    total = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(total, total[-1] / 2)])


def _latency_us(table: RoundTrips) -> float:
    """The middle of the fastest each way: what clocks are apart cancels."""
    if table.by_packets:
        ways = ((rt.W_PUSH_RECV, rt.S_PUSH_SEND), (rt.S_PULL_SEND, rt.W_PULL_RECV))
    else:
        ways = ((rt.S_PUSH_SEND, rt.W_PUSH_RECV), (rt.W_PULL_SEND, rt.S_PULL_RECV))
    fastest = []
    for sent, received in ways:
        known = table.has(sent, received)
        if known.any():
            fastest.append(float((table.times[received][known] - table.times[sent][known]).min()))
    return sum(fastest) / len(fastest) if fastest else 0.0
