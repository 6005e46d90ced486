"""What a measured process is told, and how it tells what it measured.

The only thing about a job that both its worker and the runner read.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field
from typing import Any

from workloads import ELEMENT_BYTES, Tensor, Workload, load, uniform

MARK = "@lab "
DEVICE = "LAB_DEVICE"  # names the variable that names the interface


@dataclass(frozen=True)
class Config:
    mode: str  # train, rounds, flood, idle
    tensors: dict[str, Any]  # {"model", "scale", "compute_s"} or {"count", "bytes", "urgent_bytes"}
    store: str | None = "dist_sync"  # None: no store at all
    rounds: int = 5
    warmup: int = 1
    slow_rank: int = -1  # train: this worker computes `slowness` times as long
    slowness: float = 1.0
    reports: list[int] = field(default_factory=list)  # rounds after which to say `progress`
    urgent: int = 0  # flood: how often to push the first tensor, the urgent one
    urgent_every_s: float = 0.1
    idle_s: float = 5.0


def workload_of(spec: dict[str, Any]) -> Workload:
    if "model" not in spec:
        bulk = uniform(spec["count"], spec["bytes"])
        if "urgent_bytes" not in spec:
            return bulk
        urgent = Tensor("urgent_tensor", spec["urgent_bytes"] // ELEMENT_BYTES, 0.0, 0.0)
        return Workload(f"{bulk.name} and an urgent one", (urgent, *bulk.tensors))
    shaped = load(spec["model"]).scaled(spec.get("scale", 1.0))
    return shaped.with_compute(spec["compute_s"]) if "compute_s" in spec else shaped


def say(event: str, **fields: Any) -> None:
    print(MARK + json.dumps({"event": event, **fields}), flush=True)


def usage() -> dict[str, float]:
    """The clock, this process's processor time, and the bytes of its interface."""
    now, cpu, sent, received = time.monotonic(), time.process_time(), 0, 0
    device = os.environ.get(DEVICE, "lo")
    with open("/proc/net/dev") as table:
        for line in table.readlines()[2:]:
            name, _, rest = line.partition(":")
            if name.strip() == device:
                figures = rest.split()
                received += int(figures[0])
                sent += int(figures[8])
    return {"t": now, "cpu_s": cpu, "sent": sent, "received": received}
