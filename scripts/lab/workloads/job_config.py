"""What the processes of a measured job are told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from scripts.lab.workloads.kinds import WHOLE
from scripts.lab.workloads.workload import ELEMENT_BYTES, Tensor, Workload, load, uniform


@dataclass(frozen=True)
class Config:
    mode: str  # train, rounds, flood, idle
    # {"model", "scale", "compute_s", "steps"} or {"count", "bytes", "urgent_bytes"}
    tensors: dict[str, Any]
    store: str | None = "dist_sync"  # None: no store at all
    kind: str = WHOLE  # of values; rounds
    rounds: int = 5
    warmup: int = 1
    slow_rank: int = -1  # train: this worker computes `slowness` times as long
    slowness: float = 1.0
    # train: a file that says how many iterations may begin; then the end of each is told.
    allowed_file: str = ""
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
