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
    start, end = (np.empty((len(job), len(bandwidth))) for _ in range(2))
    link_free = np.zeros(len(bandwidth))
    for first, last in _buckets(job, options.bucket_bytes):
        size = float(job.bytes[first : last + 1].sum())
        startup = options.startup_s if steps and size else 0.0
        began = np.maximum(link_free, job.bp_end[first])
        moving = steps / options.workers * size / bandwidth
        link_free = began + startup + moving + steps * options.latency_s * (size > 0)
        start[first : last + 1], end[first : last + 1] = began, link_free
    if options.barrier:
        end = np.maximum(end, link_free)
    return Transfers(start, end, end)


def _buckets(job: Job, bucket_bytes: float) -> list[tuple[int, int]]:
    """(first, last) layer of each bucket, in the order of sending: from the last layer down."""
    buckets = []
    last, size = len(job) - 1, 0.0
    for layer in range(len(job) - 1, -1, -1):
        size += job.bytes[layer]
        if size >= bucket_bytes or layer == 0:
            buckets.append((layer, last))
            last, size = layer - 1, 0.0
    return buckets
