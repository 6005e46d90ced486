"""What a job waits for, as shares of its iterations: read off the critical path, not simulated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tracer.analysis import critical
from tracer.analysis.overheads import computation
from tracer.analysis.phases import phases
from tracer.format.record import ASYNCHRONOUS, Array, Ints
from tracer.round_trip import RoundTrips
from tracer.table import Table

# Of the critical path's segments; all but these and computation are on links.
ON_SERVERS = {"update", "search", "update and sending sums"}
# As `mercury trace live` has it: a worker is slow that is on the path in so many iterations, and
# computes longer than the others by so much of an iteration.
OFTEN, MUCH = 0.7, 0.02


@dataclass(frozen=True)
class Waits:
    """Of an iteration, on average. The shares are of its critical path, and add up to 1."""

    iteration_us: float  # a worker's; paths may begin earlier and overlap
    computation: float
    links: float
    updates: float
    slow: float  # of it, what the slow worker computes longer than the others
    slow_worker: int | None


def waits(table: RoundTrips) -> Waits | None:
    """None: no iteration is there as a whole, with the one before it."""
    found = critical.path(table)
    known = np.unique(found["iteration"][found["what"] == critical.COMPUTATION])
    path = _rows(found, np.isin(found["iteration"], known))
    total = int(path["us"].sum())
    whole_us = phases(table)["whole_us"]
    if total <= 0 or not len(whole_us):
        return None
    what, us = path["what"], path["us"]
    computed = what == critical.COMPUTATION
    updated = np.isin(what.astype(str), [*ON_SERVERS])
    worker, excess_us = _slow_worker(_rows(path, computed), table, total)
    own = int(us[computed].sum())
    return Waits(
        iteration_us=float(whole_us.mean()),
        computation=(own - excess_us) / total,
        links=int(us[~computed & ~updated].sum()) / total,
        updates=int(us[updated].sum()) / total,
        slow=excess_us / total,
        slow_worker=worker,
    )


def _rows(found: Table, rows: Array) -> Table:
    return Table(found.title, {name: values[rows] for name, values in found.columns.items()})


def _slow_worker(computed: Table, table: RoundTrips, total: int) -> tuple[int | None, int]:
    """Which, and what it costs all iterations together."""
    on_path: Ints = np.asarray([int(node.split()[1]) for node in computed["node"]], np.int64)
    counts = np.bincount(on_path, minlength=table.workers)
    worker = int(counts.argmax())
    if table.training == ASYNCHRONOUS:
        return None, 0  # nobody waits for others
    if table.workers < 2 or counts[worker] < OFTEN * len(on_path):
        return None, 0
    every = computation(table).by_key
    width = int(every["key"].max(initial=0)) + 1
    of_each = every["iteration"] * width + every["key"]
    order = np.argsort(of_each, kind="stable")
    path = [computed[name][on_path == worker] for name in ("iteration", "key", "us")]
    wanted = path[0] * width + path[1]
    begin = np.searchsorted(of_each[order], wanted)
    end = np.searchsorted(of_each[order], wanted, "right")
    excess = 0
    for first, last, us in zip(begin, end, path[2]):
        rows = order[first:last]
        others = every["us"][rows[every["worker"][rows] != worker]]
        if len(others):
            excess += max(0, int(us - np.median(others)))
    return (worker, excess) if excess >= MUCH * total else (None, 0)
