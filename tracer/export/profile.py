"""What a framework's own profiler wrote, as lanes beside ours: MXNet's dump, torch's Kineto.

Both write Chrome's trace event format with times of their host's wall clock: MXNet in microseconds
since 1970, Kineto since a base that it names. What a viewer needs is kept: slices, counters,
instants and whole arrows. Slices that cross, which no viewer shows, go to lanes of their own.
"""

from __future__ import annotations

import bisect
import gzip
import io
import json
import re
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tracer.errors import TraceError, UsageError

Event = dict[str, Any]
Place = tuple[str, str]  # process and thread, as the profiler named them
ABSOLUTE_US = 1e14  # a time above this is since 1970, one below since the file's base
ROUNDING_US = 0.0005
SHORTEST_US = 0.002
# Of one that is packed: in memory its events are about ten times as large.
UNPACKED_BYTES_MAX = 256 << 20
RANK_IN_NAME = re.compile(r"(?:rank|worker)[-_.]?(\d+)", re.IGNORECASE)


@dataclass
class Slice:
    begin: float  # microseconds since 1970 of the worker's clock, less the origin
    end: float
    event: Event


@dataclass
class Lane:
    """Slices that lie beside or inside one another."""

    name: str
    slices: list[Slice] = field(default_factory=list)
    begins: list[float] = field(default_factory=list)  # of the slices, which ascend
    others: list[Event] = field(default_factory=list)  # instants and arrows, `ts` like `begin`


@dataclass
class Profile:
    """One worker's. Times are relative to `origin_us`, so that nanoseconds keep their places."""

    path: str
    rank: int | None
    origin_us: int
    lanes: list[Lane]
    counters: list[Event]

    @property
    def span(self) -> tuple[float, float]:
        slices = [piece for lane in self.lanes for piece in lane.slices]
        return min(piece.begin for piece in slices), max(piece.end for piece in slices)


def read_profile(path: str | Path, rank: int | None = None) -> Profile:
    """The file of one worker; `rank` if it does not say itself whose it is."""
    document = _document(path)
    events = document.get("traceEvents")
    if not isinstance(events, list):
        raise TraceError(
            f"{path}: is not a profile: it has no list of traceEvents, as mx.profiler.dump() and "
            "torch's export_chrome_trace() write it"
        )
    timed = [e for e in events if isinstance(e, dict) and isinstance(e.get("ts"), (int, float))]
    base_ns = document.get("baseTimeNanoseconds")
    absolute = bool(timed) and min(event["ts"] for event in timed) > ABSOLUTE_US
    if absolute:
        origin_us = int(timed[0]["ts"])
        move = float(-origin_us)
    elif isinstance(base_ns, int):
        origin_us, move = base_ns // 1000, base_ns % 1000 / 1000
    else:
        raise TraceError(f"{path}: does not say when it was: its times are not since 1970")
    reader = _Reader(_names(events))
    for event in timed:
        reader.take(event, event["ts"] + move)
    lanes = reader.lanes()
    if not any(lane.slices for lane in lanes):
        raise TraceError(f"{path}: holds nothing that took time; was the profiler running?")
    return Profile(
        str(path), rank if rank is not None else _rank(document, path), origin_us, lanes,
        reader.counters,
    )  # fmt: skip


def named_profile(text: str) -> tuple[int | None, str]:
    """`1:FILE` as rank and file; a file alone is its own."""
    rank, colon, path = text.partition(":")
    return (int(rank), path) if colon and rank.isdecimal() and path else (None, text)


def of_workers(texts: Iterable[str], workers: int) -> list[Profile]:
    """Each worker's, at most one."""
    found: dict[int, Profile] = {}
    for text in texts:
        rank, path = named_profile(text)
        profile = read_profile(path, rank)
        if profile.rank is None and workers == 1:
            profile.rank = 0
        if profile.rank is None or profile.rank >= workers:
            problem = (
                "does not say which worker's it is"
                if profile.rank is None
                else f"is of worker {profile.rank}, and there are {workers}"
            )
            raise UsageError(f"{profile.path}: {problem}; write 0:{profile.path} for worker 0's")
        if profile.rank in found:
            raise UsageError(
                f"{profile.path}: is of worker {profile.rank}, as is {found[profile.rank].path}"
            )
        found[profile.rank] = profile
    return [found[rank] for rank in sorted(found)]


def _document(path: str | Path) -> dict[str, Any]:
    try:
        raw = Path(path).read_bytes()
        if raw[:2] == b"\x1f\x8b":
            with gzip.open(io.BytesIO(raw)) as packed:
                raw = packed.read(UNPACKED_BYTES_MAX + 1)
            if len(raw) > UNPACKED_BYTES_MAX:
                raise TraceError(
                    f"{path}: has more than {UNPACKED_BYTES_MAX >> 20} MiB when it is unpacked; "
                    "profile fewer steps, or unpack it first if there is memory for ten times that"
                )
        found = json.loads(raw)
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", None) or error
        raise TraceError(f"{path}: cannot be read: {why}") from error
    except ValueError as error:
        raise TraceError(f"{path}: is not JSON, or is cut off: {error}") from error
    except RecursionError:
        raise TraceError(f"{path}: is nested too deep to be a profile") from None
    return found if isinstance(found, dict) else {"traceEvents": found}


def _rank(document: dict[str, Any], path: str | Path) -> int | None:
    """As Kineto says, or as the file's name does: worker_1.json, rank1.pt.trace.json."""
    said = document.get("distributedInfo")
    if isinstance(said, dict) and isinstance(said.get("rank"), int):
        return int(said["rank"])
    in_name = RANK_IN_NAME.findall(Path(path).name)
    return int(in_name[0]) if len(in_name) == 1 else None


def _names(events: list[Any]) -> dict[tuple[str, str | None], str]:
    """Of processes (thread None) and threads, by the profiler's numbers."""
    said: dict[tuple[str, str | None], list[str]] = defaultdict(list)
    for event in events:
        if not isinstance(event, dict) or event.get("ph") != "M":
            continue
        args = event.get("args")
        if not isinstance(args, dict):
            continue
        pid, tid = str(event.get("pid")), str(event.get("tid"))
        if event.get("name") in ("process_name", "process_labels"):
            what = args.get("name") or args.get("labels")
            said[pid, None].append(str(what or "").strip())
        elif event.get("name") == "thread_name":
            said[pid, tid].append(str(args.get("name", "")).strip())
    return {place: " ".join(dict.fromkeys(filter(None, words))) for place, words in said.items()}


class _Reader:
    """Sorts events into lanes."""

    def __init__(self, names: dict[tuple[str, str | None], str]) -> None:
        self._names = names
        self._slices: dict[Place, list[Slice]] = defaultdict(list)
        self._open: dict[tuple[Any, ...], list[Slice]] = defaultdict(list)
        self._marks: list[tuple[Place, Event]] = []
        self._operators = False  # MXNet's, in their own right
        self.counters: list[Event] = []

    def take(self, event: Event, at: float) -> None:
        kind = event.get("ph")
        place = str(event.get("pid")), str(event.get("tid"))
        moved = {**event, "ts": at}
        if kind == "X":
            length = event.get("dur")
            if isinstance(length, (int, float)):
                self._slices[place].append(Slice(at, at + max(length, SHORTEST_US), event))
        elif kind in ("B", "b"):
            self._operators |= kind == "B" and event.get("cat") == "operator"
            self._open[self._key(event, place)].append(Slice(at, at, event))
        elif kind in ("E", "e"):
            begun = self._open[self._key(event, place)]
            if begun:
                piece = begun.pop()
                piece.end = max(at, piece.begin + SHORTEST_US)
                self._slices[place].append(piece)
        elif kind == "C":
            self.counters.append(moved)
        elif kind in ("i", "I", "s", "f"):
            self._marks.append((place, moved))

    def _key(self, event: Event, place: Place) -> tuple[Any, ...]:
        """What a begin and its end have in common."""
        if event["ph"] in "BE":
            return (*place, "")
        return (*place, event.get("cat"), event.get("id"), event.get("name"))

    def lanes(self) -> list[Lane]:
        by_place: dict[Place, list[Lane]] = {}
        for place, slices in sorted(self._slices.items()):
            if self._operators:
                # MXNet tells each operator twice: by its device, and as a task of a domain.
                slices = [s for s in slices if _kind(s) not in ("b operator", "e operator")]
            if slices:
                by_place[place] = list(_without_crossing(self._name(place), slices))
        self._place_marks(by_place)
        return [lane for lanes in by_place.values() for lane in lanes]

    def _name(self, place: Place) -> str:
        pid, tid = place
        process = self._names.get((pid, None), pid)
        threads = sorted(thread for of, thread in self._slices if of == pid)
        number = f"thread {threads.index(tid) + 1}" if len(threads) > 1 else ""
        return " ".join(filter(None, (process, self._names.get((pid, tid), number))))

    def _place_marks(self, by_place: dict[Place, list[Lane]]) -> None:
        """Instants and arrows; an arrow only if both of its ends lie in a slice."""
        arrows: dict[tuple[Any, ...], dict[str, tuple[Lane, Event]]] = defaultdict(dict)
        for place, event in self._marks:
            lanes = by_place.get(place, [])
            if event["ph"] in ("i", "I"):
                if lanes:
                    lanes[0].others.append({**event, "ph": "i", "s": "t"})
                continue
            lane = next((one for one in lanes if _covers(one, event["ts"])), None)
            if lane is not None:
                ident = event.get("cat"), event.get("name"), event.get("id")
                arrows[ident].setdefault(event["ph"], (lane, event))
        for ends in arrows.values():
            if len(ends) == 2:
                for lane, event in ends.values():
                    lane.others.append(event)


def _kind(piece: Slice) -> str:
    return f"{piece.event.get('ph')} {piece.event.get('cat')}"


def _without_crossing(name: str, slices: list[Slice]) -> Iterator[Lane]:
    number = 1
    while slices:
        lane = Lane(name if number == 1 else f"{name} ({number})")
        left: list[Slice] = []
        open_until: list[float] = []
        for piece in sorted(slices, key=lambda one: (one.begin, -one.end)):
            while open_until and open_until[-1] <= piece.begin + ROUNDING_US:
                open_until.pop()
            if open_until and piece.end > open_until[-1] + ROUNDING_US:
                left.append(piece)
                continue
            open_until.append(piece.end)
            lane.slices.append(piece)
            lane.begins.append(piece.begin)
        yield lane
        slices, number = left, number + 1


def _covers(lane: Lane, at: float) -> bool:
    """Whether a slice of a lane is open at a time: the last to begin by then, or one around it."""
    place = bisect.bisect_right(lane.begins, at)
    return any(one.end > at for one in lane.slices[max(place - 64, 0) : place])
