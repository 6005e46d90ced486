"""One job over many bandwidths: normalised speed, and the bandwidth a job needs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from pslite_ext.forecast.model.job import Array, Job, ModelError, number
from pslite_ext.forecast.model.options import Options
from pslite_ext.forecast.model.predict import POLICIES, transfers
from pslite_ext.forecast.model.timeline import forward_ends

FASTEST = 1e18  # bytes per second; what is not fast enough here never is
GRID = 128


@dataclass(frozen=True)
class Sweep:
    """Iteration times per policy, one for each bandwidth (bytes per second)."""

    bandwidths: Array
    oracle_s: float
    iteration_s: dict[str, Array]

    def speed(self, policy: str) -> Array:
        times = self.iteration_s[policy]
        return np.divide(self.oracle_s, times, out=np.ones_like(times), where=times > 0)


def sweep(
    job: Job,
    bandwidths: Sequence[float] | Array,
    policies: Iterable[str] | None = None,
    **options: object,
) -> Sweep:
    """`job` at every bandwidth under every policy (all of them unless named)."""
    rates = np.array([number("bandwidth", value, above_zero=True) for value in bandwidths])
    if not len(rates):
        raise ModelError("a sweep needs at least one bandwidth")
    known = Options.of(options)
    times = {
        policy: _iteration_s(job, rates, policy, known)
        for policy in (POLICIES if policies is None else policies)
    }
    return Sweep(rates, job.compute_s, times)


def required_bandwidth(
    job: Job, policy: str = "mercury", target: float = 0.99, **options: object
) -> float:
    """The bandwidth (bytes/s) from which on t_oracle / t_iter stays above `target`; inf if none.

    Policies that cannot preempt a piece are not monotone in the bandwidth: a faster link may have
    just begun a piece that a slower one had not. So a whole range is looked at, and the highest
    bandwidth that fails is closed in on.
    """
    if not 0 < number("target", target) < 1:
        raise ModelError(f"target must be between 0 and 1, not {target!r}")
    known = Options.of(options)
    if job.compute_s <= 0:
        raise ModelError("a job without computation has no normalised speed")

    def failing(*rates: float) -> list[int]:
        speed = job.compute_s / _iteration_s(job, np.array(rates), policy, known)
        return [index for index, value in enumerate(speed) if not value > target]

    if failing(FASTEST):
        return math.inf
    low = max(float(job.bytes.sum()), 1.0) / job.compute_s / 1e4
    high = low
    while failing(high):
        high *= 2
    high *= 8  # look beyond the first bandwidth that is enough
    while high / low > 1 + 1e-9:
        grid = np.geomspace(low, high, GRID)
        fail = failing(*grid)
        if not fail:
            return float(low)
        low = float(grid[fail[-1]])
        high = float(grid[min(fail[-1] + 1, GRID - 1)])
        if low == high:  # the highest looked at fails: a piece's worth beyond, look further
            high = low * 8
    return high


def _iteration_s(job: Job, rates: Array, policy: str, options: Options) -> Array:
    ends: Array = forward_ends(job, transfers(job, rates, policy, options).pull_end)[-1]
    return ends
