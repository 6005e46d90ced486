"""Clusters whose links carry packets as Mercury's do: in its windows, and of its sizes."""

from __future__ import annotations

from pslite_ext.forecast.simulate.cluster import Cluster

# As pslite_ext/csrc/links/fair_share.cc, policy/ (credit.cc, policy.cc) and process/node_options.cc
# have it.
SEGMENT_BYTES, SEGMENTS_MIN = 1448, 3
DELAY_S, SPARE_S, QUEUE_S_MAX = 0.001, 0.020, 0.006
PACKET_S, PACKET_BYTES_MIN = 0.0006, 4 << 10  # halved while a link needs longer for one
CREDIT_S, CREDIT_BYTES_MIN = 0.002, 48 << 10


def window_bytes(bandwidth: float, links: int, round_trip_s: float) -> float:
    """What each of a host's links may have under way, if all are used."""
    queue_s = min(DELAY_S + SPARE_S / links, QUEUE_S_MAX)
    share = bandwidth * (1.25 * round_trip_s + queue_s) / links
    # Of whole segments, now fewer, now more: on average so much.
    return SEGMENT_BYTES * max(share / SEGMENT_BYTES + 0.5, SEGMENTS_MIN)


def credit_bytes(bandwidth: float, servers: int, round_trip_s: float, packet: int) -> float:
    """What a worker has under way to each of a few servers, if all are used."""
    carried = bandwidth * (1.25 * round_trip_s + CREDIT_S) / servers
    return max(carried, CREDIT_BYTES_MIN, 2 * packet)


def links_of_a_host(workers: int, servers: int, beside: bool) -> int:
    """In one direction; `beside` counts those of the worker and of the server that share it."""
    return max(workers + servers - 2, 1) if beside else max(workers, servers)


def packet_bytes(bandwidth: float, workers: int, servers: int) -> int:
    size = 64 << 10 if workers <= 2 else 32 << 10
    if max(workers, servers) > 4:
        size = 16 << 10
    while size > max(PACKET_BYTES_MIN, bandwidth * PACKET_S):
        size //= 2
    return size


def mercury_cluster(
    workers: int,
    servers: int,
    bandwidth: float,
    *,
    latency_s: float,
    reaction_s: float,
    beside: bool = False,
) -> Cluster:
    """All nodes alike; `bandwidth` is what a link carries of data, in bytes a second."""
    links = links_of_a_host(workers, servers, beside)
    packet, round_trip_s = packet_bytes(bandwidth, workers, servers), 2 * latency_s
    window = window_bytes(bandwidth, links, round_trip_s)
    return Cluster.even(
        workers,
        servers,
        bandwidth,
        latency_s=latency_s,
        packet_bytes=packet,
        sharing="fifo",
        window_bytes=min(window, credit_bytes(bandwidth, servers, round_trip_s, packet)),
        reaction_s=reaction_s,
        beside=beside,
    )
