"""What is said of the links while a job runs."""

from __future__ import annotations

import os
import socket
import time

from scripts.lab.bed.bed import LoopbackBed
from scripts.lab.systems.watch import Links, Look, Tally, Watch, read_segments

SNMP = """Ip: Forwarding DefaultTTL
Ip: 1 64
Tcp: RtoAlgorithm OutSegs RetransSegs InErrs
Tcp: 1 2000 3 0
"""


def test_segments_are_found_by_name() -> None:
    assert read_segments(SNMP) == (2000, 3)


def test_a_host_s_figures_are_of_the_time_between_the_marks() -> None:
    rate = 8e6  # a megabyte a second
    looks = [Look(0.0, 0, 0, 0), Look(0.5, 250_000, 500_000, 3000), Look(1.0, 750_000, 500_000, 0)]
    links = Links(2.0, {"worker0": Tally(1_000_000, 500_000, 2000, 4, 3)}, {"worker0": looks})
    assert links.retransmitted() == {"worker0": 0.002}
    assert links.used(rate) == {"worker0": (0.5, 0.25)}
    assert links.waiting() == {"worker0": 1000}


def test_a_watch_needs_both_ends() -> None:
    with LoopbackBed(["a"]) as bed:
        watch = Watch(bed, every_s=0.001)
        assert watch.end() is None
        watch = Watch(bed, every_s=0.001)
        watch.begin({"a": os.getpid()})
        deadline = time.monotonic() + 30
        while not watch._looks["a"] and time.monotonic() < deadline:
            time.sleep(0.001)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            socket.create_connection(listener.getsockname()).close()
        links = watch.end()
        assert watch.end() is None
    assert links is not None
    assert links.looks["a"]
    assert links.change["a"].segments > 0
