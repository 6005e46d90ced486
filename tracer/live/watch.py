"""A running job as its trace files show it so far: steps, who is late, what links carry.

Every time is compared with times of the same clock only, so that none needs to be right: a worker's
steps by its own, who came last by the server's, or by the leader's within a host. What is told is
of the last seconds. Nothing here waits or prints; the caller says when to look.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tracer import round_trip as rt
from tracer.errors import TraceError
from tracer.format.record import ASYNCHRONOUS, ROLES, STAGES, Bools, Header, Ints, Records
from tracer.grouping import group
from tracer.live.sums import Sums, last_ones
from tracer.live.tail import Tail
from tracer.run import SUFFIXES

RECENT_US = 10_000_000
STEPS_LEAST = 6  # that are looked at, however long they take
STEPS_MOST = 4096
SLOW_SHARE = 0.7  # of the sums: who is last in so many is slow,
SLOW_PART = 0.02  # if it is last by so much of a step
ENDED, FAILED, WITHOUT, LEADER = "end", "failed", "without", "leader"
_STEP = re.compile(r"step (\d+)")  # of the notes `from step` and `to step`
_WORKER = re.compile(r"worker (\d+)")


@dataclass
class Step:
    """One worker's, as far as it has been seen."""

    first_push: int
    last_push: int
    last_answer: int


@dataclass
class WorkerFigures:
    rank: int
    step: int  # the latest that it has begun; -1: none
    steps_per_s: float | None = None
    step_ms: float | None = None  # medians, here and below
    waiting_ms: float | None = None  # from its last push to its last answer
    last_share: float | None = None  # of the sums, its part came last
    behind_ms: float | None = None  # how long after the last but one, where it came last


@dataclass
class LinkFigures:
    worker: int
    server: int
    to_server: float  # bytes a second
    to_worker: float


@dataclass
class Picture:
    """What a page shows. Ranks ascend; workers that were lost are left out."""

    run: str
    mode: str
    training: str
    expected: int  # nodes of the job, without the scheduler
    seen: int
    workers: list[WorkerFigures] = field(default_factory=list)
    links: list[LinkFigures] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)  # nodes without which the job has gone on
    failure: str = ""
    over: bool = False  # every file that there is has its end
    off: bool = False  # no worker records further steps for now

    @property
    def step(self) -> int:
        """The latest that all workers have begun."""
        return min((worker.step for worker in self.workers), default=-1)

    @property
    def steps_per_s(self) -> float | None:
        """Of the slowest worker."""
        known = [w.steps_per_s for w in self.workers if w.steps_per_s is not None]
        return min(known, default=None)

    @property
    def slowest(self) -> WorkerFigures | None:
        """Who is last nearly always, and by a time that matters."""
        return next((worker for worker in self.workers if _is_slow(worker)), None)


def _is_slow(worker: WorkerFigures) -> bool:
    if worker.last_share is None or worker.behind_ms is None or worker.step_ms is None:
        return False
    return worker.last_share >= SLOW_SHARE and worker.behind_ms >= SLOW_PART * worker.step_ms


class _Traffic:
    """Bytes of a link, by the second of one node's clock."""

    def __init__(self) -> None:
        self._seconds: dict[int, int] = {}

    def add(self, time: Ints, length: Ints) -> None:
        seconds = time // 1_000_000
        for second, total in _totals(seconds, length):
            self._seconds[second] = self._seconds.get(second, 0) + total

    def rate(self, now_us: int) -> float:
        """Over the last seconds, the one that is not over yet left out."""
        this = now_us // 1_000_000
        least = this - RECENT_US // 1_000_000
        for second in [second for second in self._seconds if second < least]:
            del self._seconds[second]
        before = [second for second in self._seconds if second < this]
        if not before:
            return float(self._seconds.get(this, 0))
        return sum(self._seconds[second] for second in before) / (this - min(before))


def _totals(keys: Ints, values: Ints) -> Iterator[tuple[int, int]]:
    groups = group(keys)
    return zip(groups.keys[0].tolist(), groups.total(values).tolist())


class _NodeFile:
    def __init__(self, tail: Tail) -> None:
        self.tail = tail
        self.newest_us = 0
        self.over = False
        self.until: int | None = None  # steps from this one on are not recorded
        self.steps: dict[int, Step] = {}
        self.sums = Sums()
        self.traffic: dict[tuple[int, bool], _Traffic] = {}  # (other's rank, whether outward)

    @property
    def header(self) -> Header:
        assert self.tail.header is not None
        return self.tail.header

    @property
    def off(self) -> bool:
        """Whether what was to be recorded has been."""
        return self.until is not None and max(self.steps, default=0) >= self.until - 1


class Watch:
    """Follows the files of one directory."""

    def __init__(self, directory: str | Path) -> None:
        self._directory = Path(directory)
        self._nodes: dict[str, _NodeFile] = {}
        self._failure = ""
        self._lost: set[str] = set()  # nodes without which the job has gone on

    def look(self) -> bool:
        """Takes in what is new. Whether there was anything."""
        self._find()
        return sum(self._take(node) for node in self._nodes.values()) > 0

    def _find(self) -> None:
        """Files that have appeared. Of those in both forms the binary one is followed."""
        try:
            files = sorted(self._directory.iterdir(), key=lambda path: path.suffix != ".dlc")
        except FileNotFoundError:
            return  # the job will make it
        except OSError as error:
            raise TraceError(
                f"{self._directory}: cannot be read: {error.strerror or error}"
            ) from error
        for file in files:
            named = file.name.startswith(("trace_worker_", "trace_server_"))
            if named and file.suffix in SUFFIXES and file.stem not in self._nodes:
                self._nodes[file.stem] = _NodeFile(Tail(file))

    def _take(self, node: _NodeFile) -> bool:
        news = node.tail.look()
        for note in news.notes:
            self._note(node, note)
        records = news.records
        if not len(records):
            return bool(news.notes)
        node.newest_us = max(node.newest_us, int(records.time.max()))
        number = (records.op_num.astype(np.int64) - node.header.first_op) // STAGES
        training: Bools = records.is_data & (number >= 0)
        if training.any():
            rows = records.take(training)
            if node.header.role == "worker":
                self._steps(node, rows, _in_step(node, number[training]))
            self._pushes(node, rows, number[training])
            self._count(node, rows)
        return True

    def _note(self, node: _NodeFile, note: str) -> None:
        what, _, told = note.partition(" ")
        told = told.strip()
        node.over |= what in (ENDED, FAILED)
        if step := _STEP.fullmatch(told):
            node.until = int(step[1]) if what == "to" else None
        if what == FAILED and not self._failure:
            self._failure = told or "the job failed"
        if what == WITHOUT:
            self._lost.add(told.partition(":")[0])
        if what == LEADER and (leader := _WORKER.fullmatch(told)):
            node.sums.leader = int(leader[1])

    def _steps(self, node: _NodeFile, rows: Records, iteration: Ints) -> None:
        push, answer = rows.operation == rt.W_PUSH_SEND, rows.operation == rt.W_PULL_RECV
        groups = group(iteration)
        most, least = np.iinfo(np.int64).max, np.int64(0)
        first_push = groups.least(np.where(push, rows.time, most))
        last_push = groups.most(np.where(push, rows.time, least))
        last_answer = groups.most(np.where(answer, rows.time, least))
        for place, number in enumerate(groups.keys[0].tolist()):
            step = node.steps.setdefault(number, Step(int(most), 0, 0))
            step.first_push = min(step.first_push, int(first_push[place]))
            step.last_push = max(step.last_push, int(last_push[place]))
            step.last_answer = max(step.last_answer, int(last_answer[place]))
        kept = sorted(node.steps)
        recent = node.newest_us - RECENT_US
        for number in kept[:-STEPS_LEAST]:
            if node.steps[number].last_answer < recent or number < kept[-1] - STEPS_MOST:
                del node.steps[number]

    def _pushes(self, node: _NodeFile, rows: Records, iteration: Ints) -> None:
        """When a worker has handed over its part of each sum, and when it came to a server."""
        header = node.header
        if header.training == ASYNCHRONOUS or header.workers < 2:
            return
        is_worker = header.role == "worker"
        there = np.flatnonzero(rows.operation == (rt.W_PUSH_SEND if is_worker else rt.S_PUSH_RECV))
        worker = np.where(is_worker, header.rank, rows.node[there] // len(ROLES))
        node.sums.add(iteration[there], rows.key[there], rows.time[there], worker)
        step = max(iteration.tolist(), default=0)
        node.sums.forget(node.newest_us - RECENT_US, step - STEPS_LEAST)

    def _count(self, node: _NodeFile, rows: Records) -> None:
        outward = np.asarray(rows.src == node.header.rank_id)
        peer = (rows.node // len(ROLES)).astype(np.int64)
        for other in np.unique(peer).tolist():
            for way in (True, False):
                mine = (peer == other) & (outward == way)
                if mine.any():
                    traffic = node.traffic.setdefault((other, way), _Traffic())
                    traffic.add(rows.time[mine], rows.length[mine])

    def picture(self) -> Picture:
        nodes = [node for node in self._nodes.values() if node.tail.header is not None]
        if not nodes:
            return Picture("", "", "", 0, 0)
        header = nodes[0].header
        for node in nodes[1:]:
            if node.header.run != header.run:
                raise TraceError(
                    f"{node.tail}: is of another run than {nodes[0].tail}; "
                    "give each run a directory of its own"
                )
        there = sorted(self._there, key=lambda node: node.header.rank)
        servers = [node.sums for node in there if node.header.role == "server"]
        sums = {node.header.rank: node.sums for node in there if node.header.role == "worker"}
        last = [*last_ones(servers, sums)]
        workers = [_worker(node, last) for node in there if node.header.role == "worker"]
        return Picture(
            run=header.run,
            mode=header.mode,
            training=header.training,
            expected=header.workers + header.servers,
            seen=len(nodes),
            workers=workers,
            links=self._links(there),
            lost=sorted(self._lost),
            failure=self._failure,
            over=all(node.over for node in there),
            off=all(node.off for node in there if node.header.role == "worker") and bool(workers),
        )

    @property
    def _there(self) -> list[_NodeFile]:
        """Of those that have begun, the ones that are not lost."""
        begun = [node for node in self._nodes.values() if node.tail.header is not None]
        return [node for node in begun if node.header.node not in self._lost]

    @property
    def some_are_over(self) -> bool:
        """Whether a file has its end. Those of processes that were killed never have one, and a job
        goes on after the ends of those that it has lost."""
        return any(node.over for node in self._there)

    def _links(self, nodes: list[_NodeFile]) -> list[LinkFigures]:
        """By what the worker saw; by what the server saw where the worker's file is elsewhere."""
        found: dict[tuple[int, int], LinkFigures] = {}
        for node in sorted(nodes, key=lambda node: node.header.role != "worker"):
            rank, is_worker = node.header.rank, node.header.role == "worker"
            for other in sorted({other for other, _ in node.traffic}):
                ends = (rank, other) if is_worker else (other, rank)
                if ends not in found:
                    out, back = (
                        node.traffic[other, way].rate(node.newest_us)
                        if (other, way) in node.traffic
                        else 0.0
                        for way in (True, False)
                    )
                    there, here = (out, back) if is_worker else (back, out)
                    found[ends] = LinkFigures(*ends, there, here)
        return [found[ends] for ends in sorted(found)]


def _in_step(node: _NodeFile, number: Ints) -> Ints:
    """Keys that are pushed less often than others lag behind: they are of the step that it is."""
    latest = np.maximum(np.maximum.accumulate(number), max(node.steps, default=0))
    step: Ints = np.where(number < latest - 1, latest, number)
    return step


def _worker(node: _NodeFile, last_ones: list[tuple[int, int]]) -> WorkerFigures:
    numbers = sorted(n for n, step in node.steps.items() if step.last_push)
    figures = WorkerFigures(node.header.rank, numbers[-1] if numbers else -1)
    begun = [node.steps[n].first_push for n in numbers]
    if len(numbers) > 1 and begun[-1] > begun[0]:
        figures.steps_per_s = (numbers[-1] - numbers[0]) * 1e6 / (begun[-1] - begun[0])
        lengths = [
            (two - one) / 1e3
            for n, one, two in zip(numbers[1:], begun, begun[1:])
            if n - 1 in node.steps
        ]
        figures.step_ms = statistics.median(lengths) if lengths else None
    whole = [node.steps[n] for n in numbers[:-1] if node.steps[n].last_answer]
    if whole:
        waits = [max(step.last_answer - step.last_push, 0) / 1e3 for step in whole]
        figures.waiting_ms = statistics.median(waits)
    if last_ones:
        behind = [us / 1e3 for worker, us in last_ones if worker == figures.rank]
        figures.last_share = len(behind) / len(last_ones)
        figures.behind_ms = statistics.median(behind) if behind else None
    return figures
