"""What a captured run tells of its job and of its network: all that a replay needs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tracer import round_trip as rt
from tracer.check.cycles import check_acyclic
from tracer.clocks import aligned
from tracer.errors import TraceError
from tracer.format.record import SYNCHRONOUS, Ints
from tracer.grouping import group
from tracer.hosts import by_host
from tracer.replay.network import Network, estimate
from tracer.round_trip import RoundTrips
from tracer.run import Run

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Recorded:
    """Layers are keys in the order of urgency. Times are in seconds."""

    names: tuple[str, ...]
    mode: str
    workers: int
    servers: int
    ready_s: Floats  # iterations x workers x layers: since the last sum of the iteration before
    iteration_s: Floats  # iterations x workers: from last sum to last sum
    shares: list[list[tuple[int, float]]]  # of each layer: (server, bytes)
    update_s: Floats  # of each layer: last copy in to confirmation
    search_s: Floats  # of each layer: confirmation on the worker to the answer leaving the server
    network: Network

    @property
    def mean_s(self) -> float:
        """An iteration's time, as `Replay.mean_s` has it."""
        return float(self.iteration_s.mean())

    @property
    def bytes(self) -> Floats:
        return np.array([sum(part for _, part in parts) for parts in self.shares])


def recorded(run: Run, table: RoundTrips | None = None) -> Recorded:
    """A TraceError that says what is missing, if a replay cannot start from this run.

    `table` has its round trips on one clock, if they are known.
    """
    if run.training != SYNCHRONOUS:
        raise TraceError(f"{run.path}: is of asynchronous training; only synchronous is replayed")
    for role, count, missing in run.missing():
        if missing:
            ranks = ", ".join(map(str, missing))
            raise TraceError(
                f"{run.path}: the trace of {role} {ranks} is missing of {count} {role}s"
            )
    for trace in run.traces:
        check_acyclic(trace)
    return from_round_trips(by_host(aligned(run)[0] if table is None else table), run.path)


def from_round_trips(table: RoundTrips, path: str = "trace") -> Recorded:
    trained = np.unique(table.key).tolist()
    order = sorted(trained, key=lambda index: (-table.keys[index].priority, index))
    if not order:
        raise TraceError(f"{path}: holds no training traffic")
    layer_of = np.zeros(max(order) + 1, np.int64)
    layer_of[order] = np.arange(len(order))
    layer = layer_of[table.key]

    numbers, place = np.unique(table.iteration, return_inverse=True)
    places = (place, table.worker, layer)
    shape = (len(numbers), table.workers, len(order))
    sent = _dense(table, places, shape, table.times[rt.W_PUSH_SEND], np.minimum)
    back = _dense(table, places, shape, table.times[rt.W_PULL_RECV], np.maximum)
    whole = np.isfinite(sent).all(axis=(1, 2)) & np.isfinite(back).all(axis=(1, 2))
    # An iteration begins with the last sum of the one before, so that one must be whole too.
    usable = np.flatnonzero(whole[1:] & whole[:-1] & (np.diff(numbers) == 1)) + 1
    if not len(usable):
        raise TraceError(f"{path}: a replay needs two whole iterations in a row; there are none")
    ends = back.max(axis=2)
    ready = (sent[usable] - ends[usable - 1][:, :, None]) / 1e6
    length = (ends[usable] - ends[usable - 1]) / 1e6
    if length.mean() <= 0:
        raise TraceError(f"{path}: its iterations take no time: its clock is too coarse, or wrong")
    update, search = _overheads(table, layer, len(order))
    return Recorded(
        names=tuple(table.keys[index].name for index in order),
        mode=table.mode,
        workers=table.workers,
        servers=table.servers,
        ready_s=np.maximum(ready, 0.0),
        iteration_s=length,
        shares=_shares(table, layer, len(order)),
        update_s=update,
        search_s=search,
        network=estimate(table),
    )


def _dense(
    table: RoundTrips,
    places: tuple[Ints, Ints, Ints],
    shape: tuple[int, int, int],
    times: Ints,
    how: np.ufunc,
) -> Floats:
    """iterations x workers x layers; infinite where a record is missing."""
    known = table.has(rt.W_PUSH_SEND, rt.W_PULL_RECV)
    extreme = np.full(shape, np.inf if how is np.minimum else -np.inf)
    how.at(extreme, tuple(place[known] for place in places), times[known].astype(np.float64))
    extreme[tuple(place[~known] for place in places)] = np.inf
    return extreme


def _shares(table: RoundTrips, layer: Ints, layers: int) -> list[list[tuple[int, float]]]:
    groups = group(layer, table.server)
    most = groups.most(table.push_bytes)
    shares: list[list[tuple[int, float]]] = [[] for _ in range(layers)]
    for at, server, size in zip(*groups.keys, most):
        shares[int(at)].append((int(server), float(size)))
    return shares


def _overheads(table: RoundTrips, layer: Ints, layers: int) -> tuple[Floats, Floats]:
    """Means over the run of what a server, and a worker between its messages, took per layer."""
    update, search = np.zeros(layers), np.zeros(layers)
    packets = table.by_packets  # nothing is confirmed or asked for; the last packet counts
    begin, end = table.push_is_in, rt.S_PULL_SEND if packets else rt.S_PUSH_SEND
    others = () if packets else (rt.W_PUSH_RECV, rt.W_PULL_SEND, rt.S_PULL_RECV, rt.S_PULL_SEND)
    every = table.has(begin, end, *others) & (table.iteration > 0)
    rows = table.take(every).in_turn()
    if not len(rows):
        return update, search
    at = layer[every]
    times = rows.times.astype(np.float64)
    groups = group(rows.iteration, at, rows.server)
    took = groups.least(times[end]) - groups.most(times[begin])
    update = _mean(groups.keys[1], took, layers)
    if not packets:
        turn = times[rt.W_PULL_SEND] - times[rt.W_PUSH_RECV]
        search = _mean(at, turn + times[rt.S_PULL_SEND] - times[rt.S_PULL_RECV], layers)
    return update, search


def _mean(layer: Ints, us: Floats, layers: int) -> Floats:
    total = np.bincount(layer, us, minlength=layers)
    count = np.bincount(layer, minlength=layers)
    mean: Floats = np.maximum(total / np.maximum(count, 1), 0.0) / 1e6
    return mean
