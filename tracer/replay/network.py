"""The network that a trace was captured on, as far as its messages tell."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tracer import round_trip as rt
from tracer.format.record import Ints
from tracer.round_trip import RoundTrips

Floats = npt.NDArray[np.float64]
FASTEST = 1e12  # bytes per second: bytes took no time that a trace can show


@dataclass(frozen=True)
class Network:
    bandwidth: float  # bytes per second of a node's link, each way
    connection: float  # of one worker with one server: less where a link was not what limited
    latency_s: float  # one way


def estimate(table: RoundTrips) -> Network:
    """Latency from the smallest messages at their fastest, rates from those of the median byte.

    A connection carries its messages in order, so one is being carried from its sending, or from
    the end of the one before if that is later, to its arrival less the latency. What all
    connections of a node carry at a time adds up to the rate of its link; of many nodes the fastest
    counts, because the others' links may not have been the narrow ones.
    """
    latency_us = max(0.0, _latency_us(table))
    links: list[float] = []
    rates, sizes = [], []
    for sent, received, size in (
        (rt.W_PUSH_SEND, table.push_is_in, table.push_bytes),
        (rt.S_PULL_RECV if table.by_packets else rt.S_PULL_SEND, rt.W_PULL_RECV, table.pull_bytes),
    ):
        known = np.flatnonzero(table.has(sent, received) & (size > 0))
        begin, end = _carried(
            table.worker[known] * table.servers + table.server[known],
            table.times[sent][known].astype(np.float64),
            table.times[received][known] - latency_us,
        )
        carried = size[known].astype(np.float64)
        rates.append(carried / (end - begin))
        sizes.append(carried)
        for node, count in ((table.worker, table.workers), (table.server, table.servers)):
            for rank in range(count):
                of_node = node[known] == rank
                links.append(_link_rate(begin[of_node], end[of_node], carried[of_node]))
    connection = _median(np.concatenate(rates), np.concatenate(sizes))
    link, connection = (
        min(FASTEST, rate * 1e6) or FASTEST for rate in (max(links, default=0.0), connection)
    )
    return Network(link, connection, latency_us / 1e6)


def _carried(connection: Ints, sent: Floats, received: Floats) -> tuple[Floats, Floats]:
    """When each message was being carried; at least for the microsecond that a trace can tell."""
    order = np.lexsort((received, connection))
    before = np.append(-np.inf, received[order][:-1])
    before[np.append(True, np.diff(connection[order]) != 0)] = -np.inf
    begin = np.empty_like(sent)
    begin[order] = np.maximum(sent[order], before)
    return begin, np.maximum(received, begin + 1.0)


def _link_rate(begin: Floats, end: Floats, carried: Floats) -> float:
    """Bytes per microsecond of all messages together, at the time of the median byte."""
    if not len(begin):
        return 0.0
    rate = carried / (end - begin)
    times = np.concatenate((begin, end))
    order = np.argsort(times, kind="stable")
    together = np.cumsum(np.concatenate((rate, -rate))[order])[:-1]
    return _median(together, together * np.diff(times[order]))


def _median(values: Floats, weights: Floats) -> float:
    order = np.argsort(values)
    total = np.cumsum(weights[order])
    if not len(total) or total[-1] <= 0:
        return 0.0
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
