"""What a measured process is told, and how it tells what it measured.

The only thing about a job that both its worker and the runner read.
"""

from __future__ import annotations

import json
import os
import resource
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from workloads import ELEMENT_BYTES, Tensor, Workload, load, uniform

MARK = "@lab "
DEVICE = "LAB_DEVICE"  # names the variable that names the interface


@dataclass(frozen=True)
class Config:
    mode: str  # train, rounds, flood, idle
    # {"model", "scale", "compute_s", "steps"} or {"count", "bytes", "urgent_bytes"}
    tensors: dict[str, Any]
    store: str | None = "dist_sync"  # None: no store at all
    rounds: int = 5
    warmup: int = 1
    slow_rank: int = -1  # train: this worker computes `slowness` times as long
    slowness: float = 1.0
    reports: list[int] = field(default_factory=list)  # rounds after which to say `progress`
    urgent: int = 0  # flood: how often to push the first tensor, the urgent one
    urgent_every_s: float = 0.1
    idle_s: float = 5.0
    sample_s: float = 0.0  # how often to note the interface's counters; 0: never
    blocks_s: float = 0.0  # how often to note what Prophet does


def workload_of(spec: dict[str, Any]) -> Workload:
    if "model" not in spec:
        bulk = uniform(spec["count"], spec["bytes"])
        if "urgent_bytes" not in spec:
            return bulk
        urgent = Tensor("urgent_tensor", spec["urgent_bytes"] // ELEMENT_BYTES, 0.0, 0.0)
        return Workload(f"{bulk.name} and an urgent one", (urgent, *bulk.tensors))
    shaped = load(spec["model"]).scaled(spec.get("scale", 1.0))
    if "compute_s" in spec:
        shaped = shaped.with_compute(spec["compute_s"])
    return shaped.in_steps(spec["steps"]) if "steps" in spec else shaped


def say(event: str, **fields: Any) -> None:
    print(MARK + json.dumps({"event": event, **fields}), flush=True)


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
