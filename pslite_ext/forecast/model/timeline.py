"""What a prediction returns: when each layer did what. Time 0 is the start of backward."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pslite_ext.forecast.model.job import Array, Job, ModelError


@dataclass(frozen=True)
class Transfers:
    """When each layer's tensor moved: arrays of layers x bandwidths."""

    push_start: Array
    push_end: Array
    pull_end: Array


@dataclass(frozen=True)
class Timeline:
    """One predicted iteration; the arrays hold seconds, index 0 is the input layer."""

    policy: str
    bandwidth: float
    names: tuple[str, ...]
    bp_end: Array
    push_start: Array
    push_end: Array
    pull_end: Array
    fp_end: Array
    oracle_s: float

    @property
    def iteration_s(self) -> float:
        return float(self.fp_end[-1])

    @property
    def speed(self) -> float:
        """Speed relative to a job that never waits for the network: t_oracle / t_iter."""
        return self.oracle_s / self.iteration_s if self.iteration_s > 0 else 1.0


def check_seconds(times: Array) -> None:
    if not np.isfinite(times).all():
        raise ModelError(
            "an iteration takes longer than can be counted: give smaller times and sizes, or more "
            "bandwidth"
        )


def forward_ends(job: Job, pull_end: Array) -> Array:
    """When each layer's forward pass ends: after its own sum and the layer before it.

    The recurrence f(l) = max(pull(l), f(l-1)) + c(l) unrolls to a running maximum of
    pull(l) - C(l-1) plus C(l), with C the sum of c up to a layer: no loop over layers.
    """
    own = job.after_pull_s.reshape((-1,) + (1,) * (pull_end.ndim - 1))
    total = np.cumsum(own, axis=0)
    ends: Array = np.maximum.accumulate(pull_end - (total - own), axis=0) + total
    return ends
