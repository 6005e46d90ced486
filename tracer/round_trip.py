"""Each push and its pull at both ends, side by side: the table that all analysis starts from.

A row is the round trip of one key between one worker and one server in one iteration. Its eight
instants are in `times`, by the code of the operation, in microseconds of one clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from tracer.errors import TraceError
from tracer.format.record import DATA_OPERATIONS, MERCURY, STAGES, Array, Bools, Ints, Trace
from tracer.run import Key, Run

MISSING = np.iinfo(np.int64).min

# Rows of `times`: what a worker saw, then what a server saw.
W_PUSH_SEND, W_PUSH_RECV, W_PULL_SEND, W_PULL_RECV = range(STAGES)
S_PUSH_RECV, S_PUSH_SEND, S_PULL_RECV, S_PULL_SEND = range(STAGES, 2 * STAGES)


@dataclass(frozen=True)
class Places:
    """One number for iteration, key, worker and server, ascending with all four."""

    keys: Ints  # ascending
    workers: int
    servers: int

    def code(self, iteration: Ints, key: Ints, worker: Ints | int, server: Ints | int) -> Ints:
        place = np.searchsorted(self.keys, key)
        code: Ints = (iteration * len(self.keys) + place) * self.workers + worker
        return code * self.servers + server

    def decoded(self, code: Ints) -> tuple[Ints, Ints, Ints, Ints]:
        rest, server = np.divmod(code, self.servers)
        rest, worker = np.divmod(rest, self.workers)
        iteration, place = np.divmod(rest, max(len(self.keys), 1))
        return iteration, self.keys[place], worker, server


@dataclass
class RoundTrips:
    """Columns: a row for each push of a worker to a server and the pull that answers it."""

    iteration: Ints
    key: Ints
    worker: Ints
    server: Ints
    times: Ints  # 8 rows; MISSING where no record tells
    push_bytes: Ints
    pull_bytes: Ints
    initialised: Ints  # of each worker, when its last initial value was there; MISSING: not known
    keys: dict[int, Key]
    mode: str
    training: str
    workers: int
    servers: int
    leaders: dict[int, int] = field(default_factory=dict)  # of hosts' sums: server, worker

    def __len__(self) -> int:
        return len(self.iteration)

    def has(self, *operations: int) -> Bools:
        """Rows in which all of these instants are known."""
        found: Bools = (self.times[list(operations)] != MISSING).all(axis=0)
        return found

    def take(self, index: Array) -> RoundTrips:
        return replace(
            self,
            iteration=self.iteration[index],
            key=self.key[index],
            worker=self.worker[index],
            server=self.server[index],
            times=self.times[:, index],
            push_bytes=self.push_bytes[index],
            pull_bytes=self.pull_bytes[index],
        )

    def columns(self, *names: str) -> dict[str, Ints]:
        """Of these names, such as a table begins with."""
        return {name: getattr(self, name) for name in names}

    @property
    def places(self) -> Places:
        return Places(np.asarray(list(self.keys), np.int64), self.workers, self.servers)

    def in_turn(self) -> RoundTrips:
        """Requests that were sent ahead of a confirmation, as if they had followed it.

        Such a request waits on the server for the sum, which is confirmed when it is complete.
        """
        if self.by_packets:
            return self
        times = self.times.copy()
        for request, confirmation in ((W_PULL_SEND, W_PUSH_RECV), (S_PULL_RECV, S_PUSH_SEND)):
            known = self.has(request)
            both = np.maximum(times[request], times[confirmation])
            times[request] = np.where(known, both, MISSING)
        return replace(self, times=times)

    @property
    def ways_overlap(self) -> bool:
        """Whether a push and its pull can be on their way at the same time."""
        return self.by_packets or bool((self.in_turn().times != self.times).any())

    @property
    def by_packets(self) -> bool:
        return self.mode == MERCURY

    @property
    def push_is_in(self) -> int:
        """The instant at which a server has all of a push, were it only its last packet."""
        return S_PUSH_SEND if self.by_packets else S_PUSH_RECV

    def priority(self) -> Ints:
        """Of each row's key; the larger, the more urgent."""
        index = np.asarray(list(self.keys), np.int64)  # in ascending order
        table = np.asarray([key.priority for key in self.keys.values()], np.int64)
        return table[np.searchsorted(index, self.key)] if len(table) else self.key

    def name(self, key: int) -> str:
        return self.keys[key].name

    def names(self, keys: Ints) -> list[str]:
        return [self.name(key) for key in keys.tolist()]


def _rows_of(trace: Trace) -> tuple[Ints, Array]:
    """The numbers of the training records, and their iterations."""
    iteration = trace.iteration()
    rows = np.flatnonzero(iteration >= 0)
    return rows, iteration[rows]


def round_trips(run: Run, add_us: dict[str, Ints] | None = None) -> RoundTrips:
    """The round trips of a run; `add_us` moves each node's times, a number a record."""
    workers, servers, keys = run.num_workers, run.num_servers, run.keys()
    if not run.traces:
        raise TraceError(f"{run.path}: holds scheduler traffic only; nothing can be analysed")
    last = max((int(trace.iteration().max(initial=0)) for trace in run.traces), default=0)
    if (last + 1) * len(keys) * workers * servers >= 1 << 62:
        raise TraceError(
            f"{run.path}: names iteration {last} and {workers} workers and {servers} servers, "
            "which cannot all be right; mercury trace check says more"
        )
    places = Places(np.asarray(list(keys), np.int64), workers, servers)
    codes: list[Ints] = []
    parts: list[tuple[Trace, Ints]] = []
    for trace in run.traces:
        rows, iteration = _rows_of(trace)
        records = trace.records
        worker, server = trace.ends(rows)
        inside = (worker < workers) & (server < servers)
        rows, iteration = rows[inside], iteration[inside]
        codes.append(places.code(iteration, records.key[rows], worker[inside], server[inside]))
        parts.append((trace, rows))
    unique = np.unique(np.concatenate(codes)) if codes else np.zeros(0, np.int64)
    initialised = np.full(workers, MISSING, np.int64)
    times = np.full((DATA_OPERATIONS, len(unique)), MISSING, np.int64)
    sizes = np.zeros((2, len(unique)), np.int64)
    for (trace, rows), code in zip(parts, codes):
        records = trace.records
        place = np.searchsorted(unique, code)
        operation = records.operation[rows]
        times_of = records.time
        if add_us and trace.header.node in add_us:
            times_of = times_of + add_us[trace.header.node]
        time = times_of[rows]
        if trace.header.role == "worker":
            first = (records.operation == W_PULL_RECV) & (trace.iteration() < 0)
            initialised[trace.header.rank] = times_of[first].max(initial=MISSING)
        times[operation, place] = time
        for which, wanted in enumerate(((W_PUSH_SEND, S_PUSH_RECV), (W_PULL_RECV, S_PULL_SEND))):
            mask = np.isin(operation, wanted)
            sizes[which, place[mask]] = records.length[rows][mask]
    return RoundTrips(
        *places.decoded(unique), times, sizes[0], sizes[1], initialised, keys,
        run.mode, run.training, workers, servers, run.leaders,
    )  # fmt: skip
