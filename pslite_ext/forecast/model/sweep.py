"""One job over many bandwidths: normalised speed, and the bandwidth a job needs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from pslite_ext.forecast.model.job import Array, Job, ModelError, number
from pslite_ext.forecast.model.options import Options
from pslite_ext.forecast.model.predict import POLICIES, transfers
from pslite_ext.forecast.model.timeline import check_seconds, forward_ends

FASTEST = 1e18  # bytes per second; what is not fast enough here never is
SLOWEST = 1e-300
CELLS = 8_000_000  # bandwidths times layers at once: a gigabyte in all
COARSE, FINE = 128, 8192  # bandwidths of a look at the whole range, and of one further up
FURTHER = 4  # times as far up as the bandwidth that is found


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
    just begun a piece that a slower one had not. So the highest bandwidth that fails is closed in
    on, and those above it are looked at more closely, until none of them fails. What fails for
    less than 0.02% of a bandwidth may be missed.
    """
    if not 0 < number("target", target) < 1:
        raise ModelError(f"target must be between 0 and 1, not {target!r}")
    known = Options.of(options)
    if job.compute_s <= 0:
        raise ModelError("a job without computation has no normalised speed")

    def last_failing(rates: Array) -> int | None:
        fail = np.flatnonzero(job.compute_s / _iteration_s(job, rates, policy, known) <= target)
        return int(fail[-1]) if len(fail) else None

    def above_failing(rates: Array) -> float | None:
        """From which on none of these bandwidths fails; None if none fails at all."""
        last = last_failing(rates)
        while last is not None:
            low, high = float(rates[last]), float(rates[min(last + 1, len(rates) - 1)])
            if high / low <= 1 + 1e-9:
                return high
            rates = np.geomspace(low, high, COARSE)
            last = last_failing(rates)
        return None

    if last_failing(np.array([FASTEST])) is not None:
        return math.inf
    low = max(target * max(float(job.bytes.sum()), 1.0) / job.compute_s / 1e4, SLOWEST)
    found = above_failing(np.geomspace(low, FASTEST, COARSE))
    need = low
    while found is not None:
        need = found
        found = above_failing(np.geomspace(need, FURTHER * need, FINE))
    return need


def _iteration_s(job: Job, rates: Array, policy: str, options: Options) -> Array:
    ends: list[Array] = []
    at_once = max(1, CELLS // len(job))
    with np.errstate(all="ignore"):
        for some in np.split(rates, range(at_once, len(rates), at_once)):
            ends.append(forward_ends(job, transfers(job, some, policy, options).pull_end)[-1])
    times = np.concatenate(ends)
    check_seconds(times)
    return times
