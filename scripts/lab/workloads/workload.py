"""Workloads shaped like well-known models: every tensor's size and computation times.

Runs with any Python that has NumPy; of ours it needs the model alone.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pslite_ext.forecast.model.job import ModelError
from pslite_ext.forecast.model.job_file import read_job
from pslite_ext.forecast.model.zoo import ELEMENT_BYTES as ELEMENT_BYTES
from pslite_ext.forecast.model.zoo import timed_parameters

if TYPE_CHECKING:
    from pslite_ext.forecast.model import Job


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

    @property
    def shape(self) -> tuple[int, ...]:
        """Of two dimensions, but for what has one in every model."""
        flat = self.name.endswith(("bias", "gamma", "beta"))
        return (self.elements,) if flat else (self.elements, 1)


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

    def layers(self) -> list[list[int]]:
        """Indices of the tensors that are computed together: those of one layer."""
        names = [t.name.rpartition("_")[0] for t in self.tensors]
        indices = range(len(names))
        return [list(group) for _, group in itertools.groupby(indices, names.__getitem__)]

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

    def in_steps(self, steps: int) -> Workload:
        """Gradients appear in groups, as they do where frameworks copy several at a time."""
        times = [layer.bp_s for layer in self.job().in_steps(steps).layers]
        tensors = tuple(replace(t, backward_s=s) for t, s in zip(self.tensors, times))
        return Workload(self.name, tensors)

    def job(self) -> Job:
        """For `pslite_ext.forecast.model.predict`."""
        from pslite_ext.forecast.model import (  # the stock wheel's Python need not have it
            Job,
            Layer,
        )

        return Job(
            tuple(
                Layer(t.name, float(t.bytes), bp_s=t.backward_s, fp_s=t.forward_s)
                for t in self.tensors
            )
        )


def uniform(count: int, size: int) -> Workload:
    """`count` tensors of `size` bytes and no computation."""
    tensors = (Tensor(f"{i}_bulk", max(1, size // ELEMENT_BYTES), 0.0, 0.0) for i in range(count))
    return Workload(f"{count} x {size} bytes", tuple(tensors))


def load(name: str, profile: Path | None = None) -> Workload:
    """The model `name` with the times of its profile, or of another one; or a job's file."""
    try:
        if name.endswith(".json"):
            return _of_job(read_job(Path(name)), Path(name).stem)
        timed = timed_parameters(name, profile)
    except ModelError as error:
        raise WorkloadError(str(error)) from error
    tensors = tuple(Tensor(p.name, p.elements, *seconds) for p, *seconds in timed)
    return Workload(name, tensors)


def _of_job(job: Job, name: str) -> Workload:
    return Workload(
        name,
        tuple(
            Tensor(layer.name, max(1, round(layer.bytes / ELEMENT_BYTES)), layer.fp_s, layer.bp_s)
            for layer in job.layers
            if layer.bytes > 0
        ),
    )
