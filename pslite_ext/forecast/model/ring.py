"""Ring all-reduce with buckets, as data-parallel frameworks without servers do it."""

from __future__ import annotations

import numpy as np

from pslite_ext.forecast.model.job import Array, Job
from pslite_ext.forecast.model.options import Options
from pslite_ext.forecast.model.timeline import Transfers


def ring(job: Job, bandwidth: Array, options: Options) -> Transfers:
    """Gradients fill buckets as they become ready; full buckets are reduced one after another.

    A ring of W workers takes 2 (W - 1) steps, each of which moves a W-th of the bucket. All
    layers of a bucket start and end together.
    """
    steps = 2 * (options.workers - 1)
    start, end = (np.repeat(job.bp_end[:, None], len(bandwidth), axis=1) for _ in range(2))
    link_free = np.zeros(len(bandwidth))
    for bucket in _buckets(job, options.bucket_bytes):
        startup = options.startup_s if steps else 0.0
        began = np.maximum(link_free, job.bp_end[bucket[-1]])
        moving = steps / options.workers * float(job.bytes[bucket].sum()) / bandwidth
        link_free = began + startup + moving + steps * options.latency_s
        start[bucket], end[bucket] = began, link_free
    if options.barrier:
        end = np.maximum(end, link_free)
    return Transfers(start, end, end)


def _buckets(job: Job, bucket_bytes: float) -> list[list[int]]:
    """The layers of each bucket, in the order of sending: from the last layer down."""
    buckets: list[list[int]] = []
    size = bucket_bytes  # of the latest bucket: it is full
    for layer in np.flatnonzero(job.bytes > 0)[::-1].tolist():
        if size >= bucket_bytes:
            buckets.append([])
            size = 0.0
        buckets[-1].append(layer)
        size += job.bytes[layer]
    return buckets
