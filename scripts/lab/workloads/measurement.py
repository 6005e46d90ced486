"""How a measured process tells what it measured: lines of JSON after MARK, which the job reads."""

from __future__ import annotations

import json
import os
import resource
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

MARK = "@lab "
DEVICE = "LAB_DEVICE"  # names the variable that names the interface


def say(event: str, **fields: Any) -> None:
    rank = {"rank": int(os.environ["LAB_RANK"])} if "LAB_RANK" in os.environ else {}
    # In one piece: processes may share what they write to.
    sys.stdout.write(MARK + json.dumps({"event": event, **rank, **fields}) + "\n")
    sys.stdout.flush()


def interface() -> tuple[int, int]:
    """Bytes sent and received by this process's interface."""
    device = os.environ.get(DEVICE, "lo")
    with open("/proc/net/dev") as table:
        for line in table:
            name, _, rest = line.partition(":")
            if name.strip() == device:
                figures = rest.split()
                return int(figures[8]), int(figures[0])
    return 0, 0


def usage() -> dict[str, float]:
    """The clock, this process's processor time and peak memory, and the bytes of its interface."""
    now, cpu = time.monotonic(), time.process_time()
    sent, received = interface()
    peak_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"t": now, "cpu_s": cpu, "sent": sent, "received": received, "peak_kb": peak_kb}


class Sampler:
    """Notes figures, an interface's counters or others, at regular moments until it is stopped."""

    def __init__(self, every_s: float, look: Callable[[], tuple[float, ...]] = interface) -> None:
        self.series: list[tuple[float, ...]] = []
        self._every_s = every_s
        self._look = look
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        if every_s > 0:
            self._thread.start()

    def _run(self) -> None:
        due = time.monotonic()
        while not self._over.wait(max(0.0, due - time.monotonic())):
            self.series.append((time.monotonic(), *self._look()))
            due += self._every_s

    def stop(self) -> list[tuple[float, ...]]:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
        return self.series
