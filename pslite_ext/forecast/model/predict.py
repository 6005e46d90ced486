"""One job under one policy: `predict`."""

from __future__ import annotations

from typing import Callable

import numpy as np

from pslite_ext.forecast.model.job import Array, Job, ModelError, number
from pslite_ext.forecast.model.options import Options
from pslite_ext.forecast.model.pieces import bytescheduler, p3
from pslite_ext.forecast.model.prophet import prophet
from pslite_ext.forecast.model.ring import ring
from pslite_ext.forecast.model.timeline import Timeline, Transfers, check_seconds, forward_ends
from pslite_ext.forecast.model.whole_tensors import byteps, fifo, mercury, oracle, wfbp

POLICIES: dict[str, Callable[[Job, Array, Options], Transfers]] = {
    "oracle": oracle,
    "mercury": mercury,
    "fifo": fifo,
    "prophet": prophet,
    "bytescheduler": bytescheduler,
    "byteps": byteps,
    "p3": p3,
    "wfbp": wfbp,
    "ring": ring,
}


def predict(
    job: Job, bandwidth_bytes_per_s: float, policy: str = "mercury", **options: object
) -> Timeline:
    """One iteration of `job` where every node sends and receives at this bandwidth."""
    bandwidth = number("bandwidth", bandwidth_bytes_per_s, above_zero=True)
    with np.errstate(all="ignore"):
        moved = transfers(job, np.array([bandwidth]), policy, Options.of(options))
        fp_end = forward_ends(job, moved.pull_end[:, 0])
    check_seconds(fp_end)
    return Timeline(
        policy=policy,
        bandwidth=bandwidth,
        names=tuple(layer.name for layer in job.layers),
        bp_end=job.bp_end,
        push_start=moved.push_start[:, 0],
        push_end=moved.push_end[:, 0],
        pull_end=moved.pull_end[:, 0],
        fp_end=fp_end,
        oracle_s=job.compute_s,
    )


def model_name(policy: str) -> str:
    """The model's policies are named after systems: MERCURY_POLICY=priority is its `mercury`."""
    return "mercury" if policy == "priority" else policy


def transfers(job: Job, bandwidths: Array, policy: str, options: Options) -> Transfers:
    policy = model_name(policy)
    if policy not in POLICIES:
        raise ModelError(f"there is no policy '{policy}'; there are {', '.join(POLICIES)}")
    return POLICIES[policy](job, bandwidths, options)
