"""Pieces by priority: p3, bytescheduler, byteps with a credit, and Mercury with real packets.

A sender hands one piece after another, the most urgent one first, to a network that keeps their
order. It has a window of pieces on their way; each hand-over waits for the piece a window earlier
to be confirmed and costs the startup time, which shows unless the window covers it.
"""

from __future__ import annotations

import numpy as np

from pslite_ext.forecast.model.job import Array, Counts, Job, ModelError
from pslite_ext.forecast.model.options import Options
from pslite_ext.forecast.model.timeline import Transfers

P3_BYTES = 200e3  # 50,000 parameters in fp32
BYTESCHEDULER_BYTES = 4e6
BYTESCHEDULER_CREDIT_BYTES = 16e6
BYTEPS_BYTES = 4096e3
PIECES_MAX = 2_000_000  # a minute or two


def p3(job: Job, bandwidth: Array, options: Options) -> Transfers:
    """Small slices by priority, each waiting for the confirmation of the one before it."""
    size = options.partition_bytes or P3_BYTES
    return send_pieces(job, bandwidth, options, size, window=1, hops=2)


def bytescheduler(job: Job, bandwidth: Array, options: Options) -> Transfers:
    """Larger slices by priority, several on their way."""
    size = options.partition_bytes or BYTESCHEDULER_BYTES
    credit_bytes = options.credit_bytes or BYTESCHEDULER_CREDIT_BYTES
    return partitions(job, bandwidth, options, size, credit_bytes)


def partitions(
    job: Job, bandwidth: Array, options: Options, size: float, credit_bytes: float
) -> Transfers:
    """Of bytescheduler and byteps: as many on their way as the credit allows."""
    window = max(1, int(credit_bytes // size))
    return send_pieces(job, bandwidth, options, size, window=window, hops=4)


def packets(job: Job, bandwidth: Array, options: Options) -> Transfers:
    """Mercury with packets of a size: what is on the wire cannot be overtaken."""
    silent = Options(workers=options.workers, servers=options.servers)
    moved = send_pieces(job, bandwidth, silent, options.packet_bytes, window=1, hops=0)
    back_s = 2 * options.latency_s * (job.bytes[:, None] > 0)
    return Transfers(moved.push_start, moved.push_end, moved.pull_end + back_s)


def send_pieces(
    job: Job, bandwidth: Array, options: Options, size: float, window: int, hops: int
) -> Transfers:
    """All bandwidths in step, one piece of each at a time: every one sends the same number."""
    moves = np.flatnonzero(job.bytes > 0)
    ready = job.bp_end[moves]
    sizes = job.bytes[moves]
    expected = float(sizes.sum()) / size
    if expected > PIECES_MAX:
        raise ModelError(
            f"{expected:.3g} pieces or packets of {size:g} bytes are too many to predict, at most "
            f"{PIECES_MAX:,} are: use larger ones"
        )
    count = np.ceil(sizes / size).astype(np.int64)
    last_size = sizes - (count - 1) * size
    pending = _Pending(ready, count, len(bandwidth))
    pieces = int(count.sum())
    window = min(window, max(pieces, 1))

    rate = bandwidth * options.share
    lane = np.arange(len(bandwidth))
    handed = np.zeros(len(bandwidth))
    confirmed = np.zeros((window, len(bandwidth)))
    link_free = np.zeros(len(bandwidth))
    pull_free = np.zeros(len(bandwidth))
    start, push_end, pull_end = (
        np.repeat(job.bp_end[:, None], len(bandwidth), axis=1) for _ in range(3)
    )
    for piece in range(pieces):
        handed = np.maximum(handed, confirmed[piece % window])
        layer, left, handed = pending.take(handed)
        wire = np.where(left == 1, last_size[layer], size) / rate
        began = np.maximum(link_free, handed + options.startup_s)
        link_free = began + wire
        confirmed[piece % window] = link_free + 2 * options.latency_s
        # The sum comes back piece by piece, over a link that has its own order of arrival.
        pull_free = np.maximum(pull_free, link_free + hops * options.latency_s) + wire
        first = left == count[layer]
        start[moves[layer[first]], lane[first]] = began[first]
        push_end[moves[layer], lane] = link_free
        pull_end[moves[layer], lane] = pull_free
    return Transfers(start, push_end, pull_end)


class _Pending:
    """For every bandwidth, the layers that are ready and not sent: a stack.

    Gradients become ready in the reverse order of urgency, so the newest is the most urgent.
    """

    def __init__(self, ready: Array, count: Counts, lanes: int) -> None:
        self.ready = ready
        self.ready_down = ready[::-1]
        self.layers = len(ready)
        self.lane = np.arange(lanes)
        self.top = np.full(lanes, self.layers, dtype=np.int64)  # self.layers: nothing pending
        self.arrived = np.full(lanes, self.layers, dtype=np.int64)  # the smallest ready layer
        self.left = np.tile(count, (lanes, 1))
        self.below = np.tile(np.arange(1, self.layers + 1), (lanes, 1))

    def take(self, now: Array) -> tuple[Counts, Counts, Array]:
        """Each bandwidth's next layer, its pieces left (this one too), when it was taken."""
        idle = self.top == self.layers
        soonest = self.ready[np.maximum(self.arrived - 1, 0)]
        now = np.where(idle, np.maximum(now, soonest), now)
        arrived = self.layers - np.searchsorted(self.ready_down, now, side="right")
        fresh = np.flatnonzero(arrived < self.arrived)
        if len(fresh):
            self.below[fresh, self.arrived[fresh] - 1] = self.top[fresh]
            self.top[fresh] = arrived[fresh]
            self.arrived[fresh] = arrived[fresh]
        layer = self.top.copy()
        left = self.left[self.lane, layer]
        self.left[self.lane, layer] = left - 1
        done = np.flatnonzero(left == 1)
        self.top[done] = self.below[done, layer[done]]
        return layer, left, now
