"""What happens on the links while a job is measured: bytes, queues, drops, what TCP sent again.

Each host's counters are read through a process that runs on it, so that looking costs little: of
what starts a process (`tc`), there are two a look, the queues of all ways in and one way out.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from scripts.lab.bed.bed import LoopbackBed, Queue, read_counters
from scripts.lab.bed.namespaces import LabError

EVERY_S = 0.25


class Tally(NamedTuple):
    """Of one host, since the bed began."""

    sent: int  # bytes of its interface
    received: int
    segments: int  # that TCP sent
    retransmitted: int
    drops: int  # of its way in and its way out


class Look(NamedTuple):
    """One host at one moment."""

    t: float
    sent: int
    received: int
    waiting: int  # bytes in the queue of its way in


@dataclass
class Links:
    """What came of it, by host, between the two marks."""

    seconds: float
    change: dict[str, Tally]
    looks: dict[str, list[Look]] = field(default_factory=dict)

    def retransmitted(self) -> dict[str, float]:
        """The share of each host's segments."""
        return {h: t.retransmitted / max(t.segments, 1) for h, t in self.change.items()}

    def used(self, rate: float) -> dict[str, tuple[float, float]]:
        """The share of its link's rate that each host used, out and in."""
        whole = rate / 8 * self.seconds
        return {h: (t.sent / whole, t.received / whole) for h, t in self.change.items()}

    def waiting(self) -> dict[str, float]:
        """Bytes in each host's queue, on average."""
        return {h: statistics.mean(k.waiting for k in s) for h, s in self.looks.items() if s}


def read_segments(snmp: str) -> tuple[int, int]:
    """Sent and retransmitted, from the text of /proc/net/snmp."""
    rows = [line.split() for line in snmp.splitlines() if line.startswith("Tcp:")]
    table = dict(zip(rows[0], rows[1]))
    return int(table["OutSegs"]), int(table["RetransSegs"])


class Watch:
    """Looks at the hosts from `begin` to `end`, in a thread of its own."""

    def __init__(self, bed: LoopbackBed, every_s: float = EVERY_S) -> None:
        self._bed = bed
        self._every_s = every_s
        self._pids: dict[str, int] = {}
        self._looks: dict[str, list[Look]] = {}
        self._first: tuple[float, dict[str, Tally]] | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def begin(self, pids: Mapping[str, int]) -> None:
        """`pids`: of a process on each host."""
        self._pids = dict(pids)
        self._looks = {host: [] for host in pids}
        self._first = (time.monotonic(), self._tallies())
        self._thread.start()

    def end(self) -> Links | None:
        """None: it had not begun."""
        self._over.set()
        if self._first is None:
            return None
        now, last = time.monotonic(), self._tallies()
        self._thread.join()
        (began, first), self._first = self._first, None
        change = {
            host: Tally(*(b - a for a, b in zip(first[host], last[host])))
            for host in last
            if host in first
        }
        return Links(now - began, change, self._looks)

    def _tallies(self) -> dict[str, Tally]:
        queues_in = self._bed.queues_in()
        found = {}
        for host, pid in self._pids.items():
            with suppress(OSError, LabError):  # it has ended
                sent, received = self._bytes(pid)
                segments = read_segments(Path(f"/proc/{pid}/net/snmp").read_text())
                drops = self._bed.queue_out(host).drops + queues_in.get(host, Queue()).drops
                found[host] = Tally(sent, received, *segments, drops)
        return found

    def _bytes(self, pid: int) -> tuple[int, int]:
        table = Path(f"/proc/{pid}/net/dev").read_text()
        counters = read_counters(table, self._bed.device)
        return counters.sent, counters.received

    def _run(self) -> None:
        while not self._over.wait(self._every_s):
            with suppress(LabError):  # the bed is being taken down
                queues = self._bed.queues_in()
                for host, pid in self._pids.items():
                    with suppress(OSError):
                        look = (time.monotonic(), *self._bytes(pid))
                        self._looks[host].append(Look(*look, queues.get(host, Queue()).waiting))


def worst(figures: Sequence[float]) -> float:
    return max(figures, default=0.0)
