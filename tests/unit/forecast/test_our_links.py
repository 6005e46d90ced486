"""Windows and packets as the core has them, by hand."""

from __future__ import annotations

import pytest

from pslite_ext.forecast.simulate.our_links import (
    credit_bytes,
    mercury_cluster,
    packet_bytes,
    window_bytes,
)


def test_windows_share_what_the_link_carries() -> None:
    for links, queue_s in ((8, 0.001 + 0.020 / 8), (4, 0.006), (2, 0.006)):
        wanted = 1e8 * (1.25 * 0.0001 + queue_s) / links
        window = window_bytes(1e8, links, 0.0001)
        assert window == pytest.approx(wanted + 724)
    assert window_bytes(1e6, 8, 0.0001) == 3 * 1448


def test_packets_are_small_where_links_are_many_or_slow() -> None:
    assert packet_bytes(1e9, 2, 2) == 65536
    assert packet_bytes(1e9, 4, 2) == 32768
    assert packet_bytes(1e9, 4, 8) == 16384
    for megabits, size in ((0.1, 4096), (1, 4096), (100, 4096), (110, 8192), (500, 32768)):
        assert packet_bytes(megabits * 1e6 / 8, 2, 2) == size  # as the core's PacketBytes


def test_two_packets_may_be_under_way_and_what_a_link_carries_in_two_milliseconds() -> None:
    assert credit_bytes(1e9, 2, 1e-4, 65536) == pytest.approx(1e9 * 2.125e-3 / 2)
    assert credit_bytes(1e8, 2, 1e-4, 65536) == 2 * 65536
    assert credit_bytes(25e6, 2, 1e-4, 8192) == 48 << 10


def test_the_cluster_has_both() -> None:
    cluster = mercury_cluster(8, 8, 1e8, latency_s=5e-5, reaction_s=1e-3, beside=True)
    assert cluster.window_bytes == window_bytes(1e8, 14, 1e-4)  # seven of each half
    apart = mercury_cluster(8, 8, 1e8, latency_s=5e-5, reaction_s=1e-3)
    assert apart.window_bytes == window_bytes(1e8, 8, 1e-4)
    assert cluster.packet_bytes == 16384
    assert cluster.beside
    few = mercury_cluster(2, 2, 1e8, latency_s=5e-5, reaction_s=1e-3)
    assert few.window_bytes == credit_bytes(1e8, 2, 1e-4, packet_bytes(1e8, 2, 2))
    assert (cluster.latency_s, cluster.reaction_s) == (5e-5, 1e-3)
