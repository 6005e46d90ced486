"""All files of one run together."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from tracer.errors import TraceError
from tracer.format.reader import read_trace
from tracer.format.record import CODE, Header, Problem, Trace, whole_number
from tracer.format.step_numbers import StepNumbers, of_pushes
from tracer.grouping import group
from tracer.progress import Progress

SUFFIXES = (".txt", ".dlc")
_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Key:
    """What is known of a parameter. The less the priority, the less urgent."""

    index: int
    name: str
    bytes: int
    priority: int


@dataclass
class Run:
    """A run's traces by role, each role in the order of ranks."""

    workers: list[Trace]
    servers: list[Trace]
    scheduler: list[Trace] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    unread: list[Problem] = field(default_factory=list)  # of these, files that are left out whole
    path: str = ""

    @property
    def traces(self) -> list[Trace]:
        """Training traffic, workers first."""
        return [*self.workers, *self.servers]

    @property
    def all(self) -> list[Trace]:
        return [*self.traces, *self.scheduler]

    @property
    def header(self) -> Header:
        return self.all[0].header

    @property
    def num_workers(self) -> int:
        return max([t.header.workers for t in self.all] + [t.header.rank + 1 for t in self.workers])

    @property
    def num_servers(self) -> int:
        return max([t.header.servers for t in self.all] + [t.header.rank + 1 for t in self.servers])

    @property
    def mode(self) -> str:
        return self.header.mode

    @property
    def training(self) -> str:
        return self.header.training

    @property
    def leaders(self) -> dict[int, int]:
        """Of the servers that are the sums of a host's workers: which of them makes them."""
        found = {trace.header.rank: trace.leader for trace in self.servers}
        return {server: worker for server, worker in found.items() if worker is not None}

    def missing(self) -> Iterator[tuple[str, int, list[int]]]:
        """Of both roles: how many there were, and the ranks of which there is no file."""
        for role, traces, count in (
            ("worker", self.workers, self.num_workers),
            ("server", self.servers, self.num_servers),
        ):
            yield role, count, sorted({*range(count)} - {trace.header.rank for trace in traces})

    def keys(self) -> dict[int, Key]:
        """By index. What no note tells: a name of the index, less urgent with rising index."""
        found: dict[int, Key] = {}
        used: set[int] = set()
        for trace in self.traces:
            records = trace.records
            used.update(np.unique(records.key[records.is_data]).tolist())
            for note in trace.notes:
                key = _key_of(note.words)
                if key:
                    found.setdefault(key.index, key)
        for index in used:
            found.setdefault(index, Key(index, f"key {index}", 0, -index))
        return dict(sorted(found.items()))


def _key_of(words: list[str]) -> Key | None:
    """`key 0 bytes 2000 priority 0 name conv0_weight`"""
    if len(words) < 8 or words[0] != "key" or words[2::2][:3] != ["bytes", "priority", "name"]:
        return None
    index, size, urgency = whole_number(words[1]), whole_number(words[3]), words[5]
    priority = whole_number(urgency.removeprefix("-"))
    if index is None or size is None or priority is None:
        return None
    return Key(index, " ".join(words[7:]), size, -priority if urgency[0] == "-" else priority)


def trace_paths(path: str | Path) -> list[Path]:
    """The trace files of a directory; the binary one where a node has both forms."""
    place = Path(path)
    if os.path.isfile(place):
        return [place]
    if not os.path.isdir(place):
        raise TraceError(f"{place}: there is no such file or directory")
    chosen: dict[str, Path] = {}
    try:
        for file in sorted(place.iterdir()):
            named = file.name.startswith("trace_") and file.suffix in SUFFIXES
            if named and file.is_file() and (file.suffix == ".dlc" or file.stem not in chosen):
                chosen[file.stem] = file
    except OSError as error:
        raise TraceError(f"{place}: cannot be read: {error.strerror or error}") from error
    if not chosen:
        raise TraceError(
            f"{place}: holds no trace; traces are named trace_worker_0.txt or .dlc and are "
            "written where MERCURY_TRACE_DIR says"
        )
    return list(chosen.values())


def read_run(
    path: str | Path | Sequence[str | Path], strict: bool = False, quiet: bool = True
) -> Run:
    """A directory's traces, or those of the files given, as one run."""
    places = [path] if isinstance(path, (str, Path)) else list(path)
    files = [file for place in places for file in trace_paths(place)]
    total = sum(file.stat().st_size for file in files)
    traces: list[Trace] = []
    unread: list[Problem] = []
    with Progress(f"reading {len(files)} traces", total, quiet) as progress:
        done = 0
        for file in files:
            begun = done
            try:
                told = lambda at, base=begun: progress.reached(base + at)  # noqa: E731
                traces.append(read_trace(file, strict, told))
            except TraceError as error:
                if strict or len(files) == 1:
                    raise
                unread.append(Problem(str(file), 0, str(error).split(": ", 1)[-1]))
            done += file.stat().st_size
            progress.reached(done)
    if not traces:
        raise TraceError(f"{places[0]}: none of its {len(files)} files is a trace: {unread[0]}")
    run = assemble(traces, str(places[0]))
    run.unread = unread
    run.problems = unread + run.problems
    return run


def _fill_in(traces: Sequence[Trace]) -> None:
    """What a header leaves out, others may say, or more records tell."""
    for what in ("workers", "servers"):
        said = [trace for trace in traces if what not in trace.header.guessed] or traces
        most = max(getattr(trace.header, what) for trace in said)
        for trace in traces:
            if what in trace.header.guessed and getattr(trace.header, what) < most:
                trace.header = replace(trace.header, **{what: most})


def _steps(workers: Sequence[Trace]) -> StepNumbers:
    """By the worker that has pushed most. Of a tensor in pieces, the first counts as pushed and
    the last as answered."""

    def pushes(trace: Trace) -> int:
        return int((trace.records.operation == CODE["Push_Send_Worker"]).sum())

    trace = max(workers, key=pushes, default=None)
    if trace is None:
        return StepNumbers()
    r, number = trace.records, trace.numbers()
    times = []
    for name, nothing in (("Push_Send_Worker", _NEVER), ("Pull_Recv_Worker", -1)):
        times.append(np.where((r.operation == CODE[name]) & (number >= 0), r.time, nothing))
    places = group(r.key, number)
    key, number = places.keys
    pushed, answered = places.least(times[0]), places.most(times[1])
    there = np.flatnonzero(pushed < _NEVER)
    return of_pushes(*(column[there] for column in (key, number, pushed, answered)))


def assemble(traces: Sequence[Trace], path: str = "") -> Run:
    """Traces as one run; an error if they cannot be of one."""
    _fill_in(traces)
    first = traces[0]
    seen: dict[tuple[str, int, bool], Trace] = {}
    for trace in traces:
        header = trace.header
        for what in ("run", "mode", "training", "workers", "servers"):
            mine, others = getattr(header, what), getattr(first.header, what)
            if mine != others and (what != "run" or (mine and others)):
                raise TraceError(
                    f"{trace.path}: is of another run than {first.path}: its {what} is {mine}, "
                    f"not {others}; give each run a directory of its own"
                )
        place = (header.role, header.rank, trace.is_scheduler_traffic)
        if place in seen:
            raise TraceError(
                f"{trace.path}: is of {header.node}, as is {seen[place].path}; "
                "a run has one file a node"
            )
        seen[place] = trace
    ordered = [seen[place] for place in sorted(seen)]
    workers = [t for t in ordered if t.header.role == "worker" and not t.is_scheduler_traffic]
    steps = _steps(workers)
    for trace in ordered:
        trace.steps = steps
    return Run(
        workers=workers,
        servers=[t for t in ordered if t.header.role == "server" and not t.is_scheduler_traffic],
        scheduler=[t for t in ordered if t.is_scheduler_traffic],
        problems=[problem for trace in ordered for problem in trace.problems],
        path=path,
    )
