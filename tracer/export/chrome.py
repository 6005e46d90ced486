"""Chrome's trace event format: opens in ui.perfetto.dev and chrome://tracing.

A node is a process, a key with one other node is a thread. A worker's slices are push (sent to
confirmed) and pull (asked to answered); a server's are push (received to confirmed) and pull.
Arrows lead from sender to receiver. Times are microseconds since the run's first record. Profiles
of workers (MXNet's, torch's) are lanes of their processes, on the same clock: a step's computation,
operator by operator, its waiting and its messages stand below one another.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tracer import round_trip as rt
from tracer.analysis.phases import edges, follows
from tracer.clocks import Alignment
from tracer.errors import TraceError
from tracer.export.profile import Profile
from tracer.format.record import MERCURY, Ints, rank_id
from tracer.output import json_text, whole_file
from tracer.progress import Progress
from tracer.round_trip import RoundTrips
from tracer.run import Run

SHORTEST_US = 0.002  # a slice must have a length to be seen and to be bound to
INSIDE_US = 0.001  # how far inside a slice an arrow begins
# (name, begin, end) of the slices at each end of a round trip, and what arrows join: an arrow goes
# from one instant to another, each of which begins or ends a slice.
SLICES = (
    ("push", rt.W_PUSH_SEND, rt.W_PUSH_RECV),
    ("pull", rt.W_PULL_SEND, rt.W_PULL_RECV),
    ("push", rt.S_PUSH_RECV, rt.S_PUSH_SEND),
    ("pull", rt.S_PULL_RECV, rt.S_PULL_SEND),
)
ARROWS = {
    "zmq": (
        ("gradient", rt.W_PUSH_SEND, rt.S_PUSH_RECV),
        ("confirmation", rt.S_PUSH_SEND, rt.W_PUSH_RECV),
        ("request", rt.W_PULL_SEND, rt.S_PULL_RECV),
        ("parameters", rt.S_PULL_SEND, rt.W_PULL_RECV),
    ),
    MERCURY: (
        ("first packet", rt.W_PUSH_SEND, rt.S_PUSH_RECV),
        ("last packet", rt.W_PUSH_RECV, rt.S_PUSH_SEND),
        ("first sum", rt.S_PULL_RECV, rt.W_PULL_SEND),
        ("last sum", rt.S_PULL_SEND, rt.W_PULL_RECV),
    ),
}
OF_INSTANT = {code: number for number, slice_ in enumerate(SLICES) for code in slice_[1:]}


@dataclass
class _Layout:
    """Which process and thread things are drawn in."""

    table: RoundTrips
    start: int
    threads: int  # of a key and a peer: 2 where a push and its pull overlap
    profiled: int = 0  # lanes that the largest profile takes, between steps and messages

    def process(self, role: str, rank: int) -> int:
        return rank_id(role, rank, self.table.workers, self.table.servers) + 1

    @property
    def steps_lane(self) -> int:
        """Above every process's number: a thread with that of its process is shown as its main."""
        return self.table.workers + self.table.servers + 2

    def lane(self, key: int, peer: int, slice_number: int) -> int:
        lanes = max(self.table.workers, self.table.servers) * 2
        return (
            self.steps_lane
            + 1
            + self.profiled
            + key * lanes
            + peer * 2
            + slice_number % self.threads
        )

    def at(self, time: int) -> float:
        return float(time - self.start)


def write_chrome(
    run: Run,
    table: RoundTrips,
    path: str | Path,
    quiet: bool = True,
    profiles: Sequence[Profile] = (),
    alignment: Alignment | None = None,
    iterations: tuple[int, int] | None = None,
) -> int:
    """Writes the file; says how many events it holds.

    `iterations`: only those, from one and below the other, and of profiles what is in their time.
    """
    edge = edges(table)  # the first of some begins with the one before it
    cut = iterations is not None
    if iterations is not None:
        begin, end = iterations
        held = table.iteration
        table = table.take((table.iteration >= begin) & (table.iteration < end))
        inside = (edge["iteration"] >= begin) & (edge["iteration"] < end)
        edge = {name: column[inside] for name, column in edge.items()}
        if len(held) and not len(table):
            raise TraceError(f"{run.path}: the trace holds iterations {held.min()} to {held.max()}")
    known = table.times[table.times != rt.MISSING]
    if not len(known):
        raise TraceError(f"{run.path}: holds no push and no pull; there is nothing to draw")
    begun = edge["before"][follows(edge)]
    start = int(min(known.min(), begun.min(initial=known.min())))
    moved = [_Moved(profile, alignment) for profile in profiles]
    for one in moved:
        one.must_meet(start, int(known.max()))
    if not cut:
        start = min([start, *(int(one.begin) for one in moved)])
    profiled = max((len(profile.lanes) for profile in profiles), default=0)
    layout = _Layout(table, start, 2 if table.ways_overlap else 1, profiled)
    until = float(known.max() - start) if cut else float("inf")
    count = 0
    with Progress("writing chrome trace", len(table), quiet) as progress, whole_file(path) as file:
        head = {"tool": "mercury trace", "run": run.header.run, "start_us": layout.start}
        file.write(b'{"displayTimeUnit":"ms","otherData":')
        file.write(json.dumps(head).encode() + b',"traceEvents":[\n')
        for event in _events(run, table, edge, layout, progress, moved, until):
            text = ("" if count == 0 else ",\n") + json_text(event, indent=None).rstrip()
            file.write(text.encode())
            count += 1
        file.write(b"\n]}\n")
    return count


class _Moved:
    """A worker's profile on the run's clock."""

    def __init__(self, profile: Profile, alignment: Alignment | None) -> None:
        self.profile = profile
        self.rank = profile.rank or 0
        clock = alignment.clocks.get(f"worker {self.rank}") if alignment else None
        origin = np.asarray([profile.origin_us], np.int64)
        self.origin = profile.origin_us + (int(clock.add(origin)[0]) if clock else 0)
        begin, end = profile.span
        self.begin, self.end = self.origin + begin, self.origin + end

    def must_meet(self, start: int, end: int) -> None:
        if self.end < start or self.begin > end:
            away = (start - self.end if self.end < start else self.begin - end) / 1e6
            when = "ends before" if self.end < start else "begins after"
            raise TraceError(
                f"{self.profile.path}: {when} what the trace holds, {away:.1f} s away from it; "
                "is it of this run and this worker?"
            )

    def events(self, layout: _Layout, arrows: Iterator[int], until: float) -> Iterator[Event]:
        """In lanes of their own, above those of messages."""
        process = layout.process("worker", self.rank)
        move = float(self.origin - layout.start)
        numbers: dict[tuple[str, ...], int] = {}
        for place, lane in enumerate(self.profile.lanes):
            thread = layout.steps_lane + 1 + place
            inside = [s for s in lane.slices if s.begin + move >= 0 and s.end + move <= until]
            if not inside:
                continue
            yield _meta(process, thread, "thread_name", {"name": lane.name})
            yield _meta(process, thread, "thread_sort_index", {"sort_index": thread})
            for piece in inside:
                yield {
                    **_named(piece.event),
                    "ph": "X",
                    "pid": process,
                    "tid": thread,
                    "ts": round(piece.begin + move, 3),
                    "dur": max(round(piece.end - piece.begin, 3), SHORTEST_US),
                    "args": piece.event.get("args") or {},
                }
            for other in lane.others if until == float("inf") else ():
                event = {**other, "pid": process, "tid": thread, "ts": round(other["ts"] + move, 3)}
                if other["ph"] in "sf":
                    ident = str(other.get("cat")), str(other.get("name")), str(other.get("id"))
                    event["id"] = numbers.setdefault(ident, next(arrows))
                    event.update({"bp": "e"} if other["ph"] == "f" else {})
                yield {**event, **_named(other)}
        for counter in self.profile.counters:
            at = counter["ts"] + move
            if 0 <= at <= until:
                named = {**_named(counter), "args": counter.get("args") or {}}
                yield {**named, "ph": "C", "pid": process, "tid": 0, "ts": round(at, 3)}


def _named(event: dict[str, object]) -> Event:
    return {"name": str(event.get("name", "")), "cat": str(event.get("cat", "profile"))}


Event = dict[str, object]


def _events(
    run: Run,
    table: RoundTrips,
    edge: dict[str, Ints],
    layout: _Layout,
    progress: Progress,
    profiles: Sequence[_Moved],
    until: float,
) -> Iterator[Event]:
    yield from _names(run, table, layout)
    yield from _steps(edge, layout)
    arrows = itertools.count(len(table) * len(ARROWS[table.mode]) + 1)
    for profile in profiles:
        yield from profile.events(layout, arrows, until)
    for row in range(len(table)):
        yield from _round_trip(table, layout, row)
        if row % 1000 == 0:
            progress.reached(row)


def _names(run: Run, table: RoundTrips, layout: _Layout) -> Iterator[Event]:
    for trace in run.traces:
        header = trace.header
        process = layout.process(header.role, header.rank)
        name = f"{header.node} ({header.host})" if header.host else header.node
        yield _meta(process, 0, "process_name", {"name": name})
        yield _meta(process, 0, "process_sort_index", {"sort_index": process})
        if header.role == "worker":
            yield _meta(process, layout.steps_lane, "thread_name", {"name": "steps"})
    lanes = np.unique(np.stack([table.key, table.worker, table.server]), axis=1).T.tolist()
    for key, worker, server in lanes:
        for number in range(layout.threads):
            what = f" {SLICES[number][0]}" if layout.threads > 1 else ""
            ends = (("worker", worker, "s", server), ("server", server, "w", worker))
            for role, rank, letter, peer in ends:
                lane = layout.lane(key, peer, number)
                process = layout.process(role, rank)
                name = f"{key} {table.name(key)} {letter}{peer}{what}"
                yield _meta(process, lane, "thread_name", {"name": name})
                yield _meta(process, lane, "thread_sort_index", {"sort_index": lane})


def _meta(process: int, thread: int, name: str, args: dict[str, object]) -> Event:
    return {"ph": "M", "pid": process, "tid": thread, "name": name, "args": args}


def _steps(edge: dict[str, Ints], layout: _Layout) -> Iterator[Event]:
    for place in follows(edge).tolist():
        process = layout.process("worker", int(edge["worker"][place]))
        iteration = int(edge["iteration"][place])
        since, pushed = int(edge["before"][place]), int(edge["last_push"][place])
        for name, begin, end in (
            ("computation", since, pushed),
            ("exposed communication", pushed, int(edge["last_answer"][place])),
        ):
            yield _slice(process, layout.steps_lane, name, layout.at(begin), end - begin, iteration)


def _slice(
    process: int, lane: int, name: str, at: float, length: float, iteration: int, **args: object
) -> Event:
    return {
        "ph": "X",
        "cat": name,
        "name": name,
        "pid": process,
        "tid": lane,
        "ts": at,
        "dur": max(length, SHORTEST_US),
        "args": {"iteration": iteration, **args},
    }


def _round_trip(table: RoundTrips, layout: _Layout, row: int) -> Iterator[Event]:
    times = table.times[:, row].tolist()
    key, worker, server = int(table.key[row]), int(table.worker[row]), int(table.server[row])
    places: dict[int, tuple[int, int]] = {}
    drawn: set[int] = set()
    for number, (name, begin, end) in enumerate(SLICES):
        on_worker = begin < rt.S_PUSH_RECV
        role, rank, peer = ("worker", worker, server) if on_worker else ("server", server, worker)
        places[number] = (layout.process(role, rank), layout.lane(key, peer, number))
        if rt.MISSING in (times[begin], times[end]):
            continue
        drawn.add(number)
        size = table.push_bytes[row] if name == "push" else table.pull_bytes[row]
        yield _slice(
            *places[number], name, layout.at(times[begin]), times[end] - times[begin],
            int(table.iteration[row]), key=key, tensor=table.name(key), bytes=int(size),
        )  # fmt: skip
    for number, (name, sent, received) in enumerate(ARROWS[table.mode]):
        one, two = OF_INSTANT[sent], OF_INSTANT[received]
        if one not in drawn or two not in drawn:
            continue
        flow = row * 4 + number + 1
        common: Event = {"cat": "message", "name": name, "id": flow}
        yield {**common, "ph": "s", **_bound(layout, times, sent, places[one])}
        yield {**common, "ph": "f", "bp": "e", **_bound(layout, times, received, places[two])}


def _bound(layout: _Layout, times: list[int], instant: int, place: tuple[int, int]) -> Event:
    """Just inside the slice that begins or ends at an instant."""
    _, begin, end = SLICES[OF_INSTANT[instant]]
    at = layout.at(times[begin])
    if instant == end:
        at += max(times[end] - times[begin], SHORTEST_US)
    inward = INSIDE_US if instant == begin else -INSIDE_US
    return {"pid": place[0], "tid": place[1], "ts": round(at + inward, 3)}
