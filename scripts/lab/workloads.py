"""Workloads shaped like well-known models: every tensor's size and computation times.

Runs with any Python that has MXNet, the stock wheel's too: it needs nothing else of ours.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from architectures import ARCHITECTURES

if TYPE_CHECKING:
    from tracer.model import Job

PROFILES = Path(__file__).resolve().parent / "profiles"
ELEMENT_BYTES = 4  # float32


class WorkloadError(ValueError):
    """There is no such workload, or its profile makes no sense."""


@dataclass(frozen=True)
class Tensor:
    """One parameter as a KVStore sees it, with the seconds computed on it in an iteration."""

    name: str
    elements: int
    forward_s: float
    backward_s: float

    @property
    def bytes(self) -> int:
        return self.elements * ELEMENT_BYTES


@dataclass(frozen=True)
class Workload:
    """Tensors in the order of the forward pass: index 0 is needed first, so most urgent."""

    name: str
    tensors: tuple[Tensor, ...]

    @property
    def elements(self) -> int:
        return sum(t.elements for t in self.tensors)

    @property
    def bytes(self) -> int:
        return self.elements * ELEMENT_BYTES

    @property
    def compute_s(self) -> float:
        return sum(t.forward_s + t.backward_s for t in self.tensors)

    def scaled(self, factor: float) -> Workload:
        """Sizes and times by `factor`: the ratio of computation to communication stays."""
        tensors = tuple(
            Tensor(
                t.name,
                max(1, round(t.elements * factor)),
                t.forward_s * factor,
                t.backward_s * factor,
            )
            for t in self.tensors
        )
        return Workload(self.name, tensors)

    def with_compute(self, seconds: float) -> Workload:
        """The same shares of another total time; 0: no computation at all."""
        share = seconds / self.compute_s if seconds else 0.0
        tensors = tuple(
            replace(t, forward_s=t.forward_s * share, backward_s=t.backward_s * share)
            for t in self.tensors
        )
        return Workload(self.name, tensors)

    def job(self) -> Job:
        """For `tracer.model.predict`."""
        from tracer.model import Job, Layer  # the stock wheel's Python need not have it

        return Job(
            tuple(
                Layer(t.name, float(t.bytes), bp_s=t.backward_s, fp_s=t.forward_s)
                for t in self.tensors
            )
        )


def load(name: str, profile: Path | None = None) -> Workload:
    """The model `name` with the times of its profile, or of another one.

    A profile is a JSON object with `iteration_s`, the seconds of one iteration's computation, and
    `forward_share` of them. They are shared out by floating-point operations, unless `tensors`
    maps each tensor's name to its [forward_s, backward_s].
    """
    if name not in ARCHITECTURES:
        raise WorkloadError(f"there is no model '{name}'; there are {', '.join(ARCHITECTURES)}")
    parameters = ARCHITECTURES[name]()
    path = profile or PROFILES / f"{name}.json"
    try:
        times = json.loads(path.read_text())
        measured = times.get("tensors")
        if measured is not None:
            seconds = [tuple(map(float, measured[p.name])) for p in parameters]
        else:
            forward = times["iteration_s"] * times["forward_share"]
            backward = times["iteration_s"] - forward
            total = sum(p.flops for p in parameters)
            seconds = [(forward * p.flops / total, backward * p.flops / total) for p in parameters]
        tensors = tuple(Tensor(p.name, p.elements, *s) for p, s in zip(parameters, seconds))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise WorkloadError(f"{path}: not a profile of {name}: {error!r}") from error
    if any(t.forward_s < 0 or t.backward_s < 0 for t in tensors):
        raise WorkloadError(f"{path}: a time is negative")
    return Workload(name, tensors)
