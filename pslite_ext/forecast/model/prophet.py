"""Prophet: blocks of gradients that just finish before a more urgent gradient appears."""

from __future__ import annotations

import math

import numpy as np

from pslite_ext.forecast.model.job import Array, Job
from pslite_ext.forecast.model.options import Options
from pslite_ext.forecast.model.timeline import Transfers

PIECE_BYTES = 32 << 10  # of a gradient, a block takes as many as fit


def prophet(job: Job, bandwidth: Array, options: Options) -> Transfers:
    """Algorithm 1 of the paper; all bandwidths in step, from one production time to the next.

    During backward, whatever is taken from the stack of ready gradients must end before the next
    production time; the first piece that does not fit closes the block. What is left after
    backward goes out by priority, as a last block that nothing closes. A block pays one startup
    time: its sender knows what comes next.
    """
    moves = np.flatnonzero(job.bytes > 0)
    ready, sizes = job.bp_end[moves], job.bytes[moves]
    piece = np.minimum(options.partition_bytes or PIECE_BYTES, sizes)
    count, lanes = len(moves), len(bandwidth)
    rate = bandwidth * options.share
    left = np.repeat(sizes[:, None], lanes, axis=1)
    begin, end = (np.repeat(ready[:, None], lanes, axis=1) for _ in range(2))
    top = np.full(lanes, count, dtype=np.int64)  # count: nothing pending
    below = np.tile(np.arange(1, count + 1), (lanes, 1))

    moments = np.unique(ready)
    group_end = count  # gradients become ready from the last to the first, equal ones together
    for moment, next_moment in zip(moments, [*moments[1:], math.inf]):
        group = int(np.searchsorted(-ready, -moment, side="left"))
        below[:, group_end - 1] = top
        top[:] = group
        group_end = group
        used = np.zeros(lanes)
        lane = np.arange(lanes)
        while len(lane := lane[top[lane] < count]):
            layer, at = top[lane], used[lane]
            wire = at + np.where(at == 0, options.startup_s, 0.0)  # from then on
            rest, room_s = left[layer, lane], next_moment - moment
            fit = np.floor((room_s - wire) * rate[lane] / piece[layer])
            sent = np.clip(fit * piece[layer], 0.0, rest)
            sent = np.where(wire + rest / rate[lane] <= room_s, rest, sent)
            first = (rest == sizes[layer]) & (sent > 0)
            begin[layer[first], lane[first]] = moment + at[first]
            lane, layer, wire, sent = (of[sent > 0] for of in (lane, layer, wire, sent))
            used[lane] = wire + sent / rate[lane]
            end[layer, lane] = moment + used[lane]
            left[layer, lane] -= sent
            lane = lane[left[layer, lane] == 0]
            top[lane] = below[lane, top[lane]]

    start, push_end, pull_end = (np.repeat(job.bp_end[:, None], lanes, axis=1) for _ in range(3))
    start[moves], push_end[moves] = begin, end
    # However short its last piece is: a whole one that was pushed just before it is ahead of it.
    pull_end[moves] = end + piece[:, None] / rate + 4 * options.latency_s
    return Transfers(start, push_end, pull_end)
