"""A job under MLfabric in Chrome's trace event format: opens in ui.perfetto.dev.

A node is a process, what it sends to another is a thread: what was carried, as it was measured, and
what was planned. What overlaps there gets a thread more. Commits, and what else happens to updates,
are the server's and the workers' own. Times are microseconds since the job began.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tracer.errors import TraceError
from tracer.fabric import events, node_name
from tracer.output import whole_file

SHORTEST_US = 0.01  # a slice must have a length to be seen
_FIRST = ("server", "replica")  # then workers, by rank
_FURTHER_FROM = {"server": 10_000, "replica": 20_000}  # and the other servers and replicas


def write_chrome(source: str | Path, target: str | Path) -> None:
    try:
        document = {"traceEvents": list(_slices(source)), "displayTimeUnit": "ms"}
    except (KeyError, TypeError, ValueError) as error:
        raise TraceError(f"{source}: an event lacks what it should say: {error}") from None
    with whole_file(target) as file:
        file.write(json.dumps(document).encode())


class _Threads:
    """Which thread of a node a slice is drawn in: one that is free then."""

    def __init__(self) -> None:
        self._busy_until: dict[tuple[int, str], list[tuple[int, float]]] = {}
        self._made: dict[int, int] = {}

    def of(self, pid: int, name: str, begin_us: float, end_us: float) -> tuple[int, bool]:
        """Its number, and whether it is new."""
        rows = self._busy_until.setdefault((pid, name), [])
        for i, (tid, until) in enumerate(rows):
            if until <= begin_us:
                rows[i] = (tid, end_us)
                return tid, False
        tid = self._made[pid] = self._made.get(pid, 0) + 1
        rows.append((tid, end_us))
        return tid, True


def _slices(source: str | Path) -> Iterator[dict[str, Any]]:
    threads = _Threads()
    named: set[int] = set()
    began_s: float | None = None
    for event in events(source):
        if began_s is None:
            began_s = float(event["t"])
        for node, thread, name, begin_s, end_s in _drawn(event):
            pid = _number(node)
            if pid not in named:
                named.add(pid)
                yield _metadata("process_name", pid, 0, node_name(node))
            begin_us = max(0.0, 1e6 * (begin_s - began_s))
            end_us = max(begin_us + SHORTEST_US, 1e6 * (end_s - began_s))
            tid, new = threads.of(pid, thread, begin_us, end_us)
            if new:
                yield _metadata("thread_name", pid, tid, thread)
            slice_ = {"name": name, "cat": event["event"], "ph": "X", "pid": pid, "tid": tid}
            yield {**slice_, "ts": begin_us, "dur": end_us - begin_us, "args": event}


def _drawn(event: dict[str, Any]) -> Iterator[tuple[Any, str, str, float, float]]:
    """Node, thread, name, begin and end of an event's slices."""
    what = event["event"]
    if what in ("carried", "hop"):
        begin_s, end_s = float(event["start"]), float(event["end"])
        size = float(event["bits"]) / 8 if what == "carried" else float(event["bytes"])
        planned = ", as planned" if what == "hop" else ""
        thread = f"to {node_name(event['to'])}{planned}"
        yield event["from"], thread, f"{size / 1e6:.3g} MB", begin_s, end_s
    elif what in ("commit", "took_over"):
        at_s = float(event["t"])
        node = event.get("node", "replica") if what == "took_over" else "server"
        yield node, "versions", f"version {event['version']}", at_s, at_s
    elif what == "fate":
        at_s = float(event["t"])
        name = f"update {event['number']}: {event['fate']}"
        yield event["worker"], "what became of updates", name, at_s, at_s


def _number(node: object) -> int:
    if isinstance(node, int):
        return node + len(_FIRST) + 1
    kind, _, rank = str(node).partition(" ")
    return _FURTHER_FROM[kind] + int(rank) if rank else _FIRST.index(kind) + 1


def _metadata(what: str, pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": pid, "tid": tid, "args": {"name": name}}
