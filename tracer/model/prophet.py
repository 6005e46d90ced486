"""Prophet: blocks of gradients that just finish before a more urgent gradient appears."""

from __future__ import annotations

import numpy as np

from tracer.model.job import Array, Counts, Job
from tracer.model.options import Options
from tracer.model.timeline import Transfers


def prophet(job: Job, bandwidth: Array, options: Options) -> Transfers:
    """Algorithm 1 of the paper; all bandwidths in step, from one production time to the next.

    During backward, whatever is taken from the stack of ready gradients must end before the next
    production time; the first that does not fit closes the block. After backward the rest goes
    out by priority. Effective bandwidth: a block pays one startup time, as does each gradient
    that is sent alone.
    """
    unit_layer, unit_bytes = _units(job, options.partition_bytes)
    units, lanes = len(unit_layer), len(bandwidth)
    rate = bandwidth * options.share
    begin, end = np.zeros((units, lanes)), np.zeros((units, lanes))
    top = np.full(lanes, units, dtype=np.int64)  # units: nothing pending
    below = np.tile(np.arange(1, units + 1), (lanes, 1))

    def send(lane: Counts, unit: Counts, at: Array, wire: Array) -> None:
        begin[unit, lane], end[unit, lane] = at, at + wire
        top[lane] = below[lane, unit]

    ready = job.bp_end[unit_layer]
    moments = np.unique(ready)
    group_end = units  # units become ready from the last to the first, equal ones together
    for moment, next_moment in zip(moments, [*moments[1:], np.inf]):
        group = int(np.searchsorted(-ready, -moment, side="left"))
        below[:, group_end - 1] = top
        top[:] = group
        group_end = group
        if group == 0:
            break
        used = np.zeros(lanes)
        lane = np.arange(lanes)
        while len(lane):
            lane = lane[top[lane] < units]
            unit = top[lane]
            wire = unit_bytes[unit] / rate[lane]
            wire = wire + np.where(used[lane] == 0, options.startup_s, 0.0)
            fits = used[lane] + wire <= next_moment - moment
            lane, unit, wire = lane[fits], unit[fits], wire[fits]
            send(lane, unit, moment + used[lane], wire)
            used[lane] += wire
    now = np.full(lanes, moments[-1] if units else 0.0)
    lane = np.arange(lanes)
    while len(lane := lane[top[lane] < units]):
        unit = top[lane]
        wire = unit_bytes[unit] / rate[lane] + options.startup_s
        send(lane, unit, now[lane], wire)
        now[lane] += wire

    start, push_end, pull_end = (np.repeat(job.bp_end[:, None], lanes, axis=1) for _ in range(3))
    back = end + unit_bytes[:, None] / rate + 4 * options.latency_s
    start[unit_layer[::-1]] = begin[::-1]  # the first unit of a layer is written last
    push_end[unit_layer] = end
    pull_end[unit_layer] = back
    return Transfers(start, push_end, pull_end)


def _units(job: Job, partition_bytes: float | None) -> tuple[Counts, Array]:
    """What is sent at a time, by priority: whole gradients, or partitions of them."""
    layers: list[int] = []
    sizes: list[float] = []
    for layer, size in enumerate(job.bytes):
        while size > 0:
            piece = min(size, partition_bytes or size)
            layers.append(layer)
            sizes.append(piece)
            size -= piece
    return np.array(layers, dtype=np.int64), np.array(sizes, dtype=np.float64)
