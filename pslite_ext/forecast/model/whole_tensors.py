"""Policies in closed form: oracle, wfbp, fifo, byteps, mercury (docs/model.md has the formulas)."""

from __future__ import annotations

import numpy as np

from pslite_ext.forecast.model.job import Array, Job
from pslite_ext.forecast.model.options import Options
from pslite_ext.forecast.model.pieces import BYTEPS_BYTES, packets, partitions
from pslite_ext.forecast.model.timeline import Transfers


def oracle(job: Job, bandwidth: Array, _options: Options) -> Transfers:
    """The network takes no time at all."""
    ready = np.repeat(job.bp_end[:, None], len(bandwidth), axis=1)
    return Transfers(ready, ready, ready)


def wfbp(job: Job, bandwidth: Array, options: Options) -> Transfers:
    """Whole tensors in the order of their gradients; a pull follows its push's confirmation."""
    wire = job.bytes[:, None] / (bandwidth * options.share)
    start, end = _in_order_of_readiness(job.bp_end[:, None], wire + options.startup_s * (wire > 0))
    requested: Array = np.where(wire > 0, end + 4 * options.latency_s, end)
    if options.serial_pull:
        return Transfers(start, end, _in_order_of_readiness(requested, wire)[1])
    return Transfers(start, end, requested + wire)


def fifo(job: Job, bandwidth: Array, options: Options) -> Transfers:
    """Mercury without preemption: sums stream back while the tensor is still being pushed."""
    wire = job.bytes[:, None] / (bandwidth * options.share)
    start, end = _in_order_of_readiness(job.bp_end[:, None], wire)
    last_packet = np.minimum(wire, options.packet_bytes / (bandwidth * options.share))
    return Transfers(start, end, np.where(wire > 0, end + 2 * options.latency_s + last_packet, end))


def byteps(job: Job, bandwidth: Array, options: Options) -> Transfers:
    """As fifo, in partitions that are confirmed, then pulled; by priority if a credit is set."""
    size = options.partition_bytes or BYTEPS_BYTES
    if options.credit_bytes:
        return partitions(job, bandwidth, options, size, options.credit_bytes)
    rate = bandwidth * options.share
    wire = job.bytes[:, None] / rate
    handed = job.bp_end[:, None] + options.startup_s * (wire > 0)
    start, end = _in_order_of_readiness(handed, wire)
    # On the link back, which is as fast, it is a partition behind unless that was busy.
    back_s = 4 * options.latency_s + np.minimum(wire, size / rate)
    return Transfers(start, end, _in_order_of_readiness(end + back_s * (wire > 0) - wire, wire)[1])


def mercury(job: Job, bandwidth: Array, options: Options) -> Transfers:
    """The most urgent byte (or packet) first, at any moment; sums stream back at once."""
    if options.packet_bytes:
        return packets(job, bandwidth, options)
    wire = job.bytes[:, None] / (bandwidth * options.share)
    start, end = _most_urgent_first(job.bp_end, wire)
    return Transfers(start, end, np.where(wire > 0, end + 2 * options.latency_s, end))


def _in_order_of_readiness(ready: Array, busy: Array) -> tuple[Array, Array]:
    """Starts and ends of transfers that occupy the link for `busy`, from the last layer down.

    end(l) = max(ready(l), end(l+1)) + busy(l), as a running maximum over the layers.
    """
    ready = np.broadcast_to(ready, busy.shape)
    busy_down = busy[::-1]
    total = np.cumsum(busy_down, axis=0)
    end = np.maximum.accumulate(ready[::-1] - (total - busy_down), axis=0) + total
    start, end = (end - busy_down)[::-1], end[::-1]
    sent = busy > 0  # what has no bytes need not queue
    return np.where(sent, start, ready), np.where(sent, end, ready)


def _most_urgent_first(ready: Array, wire: Array) -> tuple[Array, Array]:
    """Starts and ends of transfers under ideal preemption, the smaller index being more urgent.

    Gradients become ready from the last layer to the first, so whatever can overtake layer l
    becomes ready after it. Layer l therefore ends when the link, less urgent layers left aside,
    first runs out of work after ready(l): the end of the busy period that starts there. That
    period is l itself plus the busy periods of more urgent layers that begin before it is over,
    each of which is taken over whole. Every period is taken over at most once, so a bandwidth
    costs O(layers) in total.
    """
    layers, lanes = wire.shape
    start = np.repeat(ready[:, None], lanes, axis=1)
    end = ready[:, None] + wire
    first_after = np.empty((layers, lanes), dtype=np.int64)  # next layer not in l's busy period
    for layer in range(layers):
        end_here = end[layer]
        following = np.full(lanes, layer - 1, dtype=np.int64)
        lane = np.arange(lanes)
        while True:
            next_layer = following[lane]
            lane = lane[next_layer >= 0]
            next_layer = following[lane]
            overlaps = ready[next_layer] < end_here[lane]
            lane, next_layer = lane[overlaps], next_layer[overlaps]
            if not len(lane):
                break
            end_here[lane] += end[next_layer, lane] - ready[next_layer]
            following[lane] = first_after[next_layer, lane]
        first_after[layer] = following
        if layer and ready[layer - 1] == ready[layer]:  # ready together: after the more urgent
            start[layer] = np.maximum(start[layer - 1], end[layer - 1])
    return np.minimum(start, end), end
