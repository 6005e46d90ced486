"""A recorded job under other conditions; under its own, to see how far that can be trusted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Callable

import numpy as np

from pslite_ext.forecast.model import Job, Layer, ModelError, Options
from pslite_ext.forecast.simulate import Cluster, SimulatedJob, simulate
from pslite_ext.forecast.simulate.our_links import packet_bytes
from pslite_ext.forecast.simulate.scheme import SCHEMES
from tracer.format.record import MERCURY
from tracer.replay.recorded import Floats, Recorded

PACKET_BYTES = 30e3
SEGMENT_BYTES = 1460.0
SEGMENTS = 4000
EVENTS_MAX = 50_000_000
# Of an iteration, replayed as recorded: up to the one the model fits the run, beyond the other
# nothing that it says is to be relied on.
ERROR_GOOD, ERROR_MOST = 0.05, 0.2


@dataclass(frozen=True)
class Conditions:
    """What differs from the recording; None: as recorded."""

    policy: str | None = None
    workers: int | None = None
    servers: int | None = None
    bandwidth: float | None = None  # bytes per second; given, connections can use all of it
    latency_s: float | None = None
    aggregate: str = "server"
    packet_bytes: float | None = None  # None: as ours are where policies have packets, else small
    options: Options | None = None
    slowness: Sequence[float] = ()  # of each worker: on top of what was recorded
    forward_share: float = 0.0


@dataclass(frozen=True)
class Replay:
    iteration_s: Floats  # iterations x workers

    @property
    def mean_s(self) -> float:
        """Of all workers: what one is late at the end of an iteration, it saves in the next."""
        return float(self.iteration_s.mean())


def own_policy(recorded: Recorded) -> str:
    return "mercury" if recorded.mode == MERCURY else "wfbp"


def replay(
    recorded: Recorded,
    conditions: Conditions,
    progress: Callable[[int, float], None] | None = None,
) -> Replay:
    """As many iterations as were recorded, each with its own computation times."""
    workers = recorded.workers if conditions.workers is None else conditions.workers
    servers = recorded.servers if conditions.servers is None else conditions.servers
    network = recorded.network
    latency_s = network.latency_s if conditions.latency_s is None else conditions.latency_s
    policy = conditions.policy or own_policy(recorded)
    bandwidth = network.bandwidth if conditions.bandwidth is None else conditions.bandwidth
    ours = packet_bytes(bandwidth, workers, servers)
    cluster = Cluster.even(
        workers,
        servers,
        bandwidth,
        latency_s=latency_s,
        packet_bytes=conditions.packet_bytes or _packet_bytes(policy, recorded, ours),
        aggregate=conditions.aggregate,
        connection_rate=network.connection if conditions.bandwidth is None else None,
    )
    ready, forward = split_forward(recorded, conditions.forward_share)
    layers = zip(recorded.names, recorded.bytes.tolist(), forward.tolist())
    as_placed = conditions.servers in (None, recorded.servers)
    run = SimulatedJob(
        job=Job(tuple(Layer(name, size, 0.0, fp_s) for name, size, fp_s in layers)),
        policy=policy,
        options=conditions.options or Options(),
        iterations=len(ready),
        ready_s=ready,
        shares=recorded.shares if as_placed else None,
        update_s=recorded.update_s.tolist(),
        search_s=recorded.search_s.tolist(),
        slowness=conditions.slowness,
    )
    done = simulate(run, cluster, events_max=EVENTS_MAX, progress=progress)
    return Replay(done.outcomes[0].iteration_s)


def _packet_bytes(policy: str, recorded: Recorded, ours: float) -> float:
    """Messages travel in segments, of which there are too many to simulate each."""
    if SCHEMES.get(policy, SCHEMES["mercury"]).streams:
        return ours
    return min(PACKET_BYTES, max(SEGMENT_BYTES, float(recorded.bytes.sum()) / SEGMENTS))


def split_forward(recorded: Recorded, share: float) -> tuple[Floats, Floats]:
    """When gradients are ready once that share of computation is a forward pass of its own.

    A trace shows that nothing is sent before all sums of the last iteration are in, not which of
    the computation before the first push was forward. What is taken for it then starts layer by
    layer with the sums, in proportion to the time between pushes, and is never more than what the
    trace shows before the first push.
    """
    if not 0 <= share < 1:
        raise ModelError(f"the share of forward computation must be from 0 to below 1, not {share}")
    layers = len(recorded.names)
    if not share:
        return recorded.ready_s, np.zeros(layers)
    first = recorded.ready_s.min(axis=2)
    computed = recorded.ready_s.max(axis=2)
    forward_s = float(min((share * computed).mean(), first.min()))
    mean_ready = recorded.ready_s.mean(axis=(0, 1))
    order = np.argsort(mean_ready, kind="stable")
    gaps = np.empty(layers)
    gaps[order] = np.diff(mean_ready[order], prepend=min(forward_s, float(mean_ready.min())))
    total = gaps.sum()
    weights = gaps / total if total > 0 else np.full(layers, 1 / layers)
    return recorded.ready_s - forward_s, forward_s * weights


def self_check(
    recorded: Recorded, progress: Callable[[int, float], None] | None = None
) -> tuple[float, float]:
    """(recorded, replayed) mean iteration under the recorded conditions."""
    own = replay(recorded, Conditions(), progress)
    return recorded.mean_s, own.mean_s
