"""Reads a trace file, text or binary.

Tolerant by default, for real files hold records out of order, ids twice and torn last lines: what
cannot be understood is left out and listed in `Trace.problems`. With strict=True the first such
place is a TraceError that names file and line.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np

from tracer.errors import TraceError
from tracer.format.binary import decode, is_binary_trace
from tracer.format.columns import Lines, parse_lines
from tracer.format.header import parse_header
from tracer.format.line import LineError, parse_line
from tracer.format.record import (
    COLUMNS,
    NODES_MOST,
    OPERATIONS,
    SERVER,
    STAGES,
    Array,
    Bools,
    Header,
    Note,
    Problem,
    Records,
    Trace,
)

CHUNK_BYTES = 2 << 20  # larger ones fall out of the processor's cache
HEADER_LINES_MAX = 1000
PROBLEMS_MAX = 100  # listed one by one; the rest is counted
RECORD = re.compile(rb"\s*-?\d+\s+-?\d+\s+-?\d+\s+-?\d+\s")
Told = Callable[[int], None]


def read_trace(path: str | Path, strict: bool = False, told: Told | None = None) -> Trace:
    """The trace in a file. `told` is called with the bytes read so far."""
    try:
        with open(path, "rb") as file:
            start = file.read(4096)
            file.seek(0)
            if is_binary_trace(start):
                trace = decode(file.read(), str(path), strict)
            else:
                _must_be_text(start, path)
                file.seek(len(start) - len(start.removeprefix(codecs.BOM_UTF8)))
                trace = _TextReader(file, str(path), strict, told).read()
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror or error}") from error
    odd = _out_of_order(trace)
    if strict and odd:
        raise TraceError(str(odd[0]))
    trace.problems += odd
    return trace


def _must_be_text(start: bytes, path: str | Path) -> None:
    if not start:
        raise TraceError(
            f"{path}: is empty; its process ended before it wrote a header, delete the file"
        )
    odd = re.search(rb"[^\t\n\r\x20-\x7e\x80-\xff]", start)
    if odd:
        raise TraceError(
            f"{path}: is not a trace: byte {odd.start()} is {odd.group()[0]:#04x}, which text does "
            "not hold, and it is no .dlc file either"
        )


class _TextReader:
    """Reads one text file; keeps what has been understood so far."""

    def __init__(self, file: IO[bytes], path: str, strict: bool, told: Told | None) -> None:
        self._file = file
        self._path = path
        self._strict = strict
        self._told = told
        self._line = 0  # lines read so far
        self._lists: dict[bytes, int] = {}
        self._parts: list[dict[str, Array]] = []
        self._count = 0
        self._notes: list[Note] = []
        self._problems: list[Problem] = []
        self._unlisted = 0

    def read(self) -> Trace:
        header_text, rest = self._read_header()
        header, given = parse_header(header_text, self._path)
        block = rest
        rest = b""
        while block:
            rest += block
            whole = rest.rfind(b"\n") + 1
            self._take(rest[:whole])
            rest = rest[whole:]
            block = self._file.read(CHUNK_BYTES)
            if self._told:
                self._told(self._file.tell())
        if rest.strip():
            self._line += 1
            self._problem(self._line, "the last line is torn: it has no end; left out")
        records = self._records()
        if not header_text and not len(records):
            raise TraceError(
                f"{self._path}: is not a trace: it holds neither a header nor a record"
            )
        guessed = frozenset({"workers", "servers"} - given)
        header = replace(header, **_missing(records, header, given, self._path), guessed=guessed)
        if max(header.workers, header.servers, header.rank) > NODES_MOST:
            raise TraceError(
                f"{self._path}: is of a run of {header.workers} workers and {header.servers} "
                f"servers, by its name or its records; more than {NODES_MOST} are none"
            )
        if self._unlisted:
            text = f"{self._unlisted} more such places are not listed"
            self._problems.append(Problem(self._path, 0, text))
        return Trace(header, records, self._notes, self._path, self._problems)

    def _read_header(self) -> tuple[list[str], bytes]:
        """The lines before the first record or note; the rest of what was read."""
        lines: list[str] = []
        while True:
            line = self._file.readline(1 << 16)
            if not line.endswith(b"\n") or RECORD.match(line) or line.startswith(b"#"):
                return lines, line
            self._line += 1
            lines.append(line.decode(errors="replace").rstrip())
            if len(lines) > HEADER_LINES_MAX:
                raise TraceError(
                    f"{self._path}: is not a trace: no record in its first {HEADER_LINES_MAX} lines"
                )

    def _take(self, text: bytes) -> None:
        if not text:
            return
        lines = parse_lines(np.frombuffer(text, np.uint8), self._lists)
        odd = np.ones(len(lines.begin), np.bool_)
        odd[lines.regular] = False
        if odd.any():
            self._merge(text, lines, odd)
        else:
            self._parts.append(lines.columns)
            self._count += len(lines.regular)
        self._line += len(lines.begin)

    def _merge(self, text: bytes, lines: Lines, odd: Bools) -> None:
        """Puts the records of odd lines between those of the regular ones."""
        before = np.cumsum(~odd)
        places: list[int] = []  # in front of which regular record each odd one belongs
        rows: list[dict[str, int]] = []
        for number in np.flatnonzero(odd).tolist():
            line = text[lines.begin[number] : lines.end[number]].decode(errors="replace").strip()
            if line.startswith("#"):
                place = self._count + int(before[number]) + len(rows)
                self._notes.append(Note(place, line[1:].strip()))
            elif line:
                try:
                    rows.append(parse_line(line, self._lists))
                    places.append(int(before[number]))
                except LineError as error:
                    self._problem(self._line + number + 1, f"{error}; left out")
        columns = lines.columns
        if rows:
            columns = {
                name: np.insert(
                    columns[name], places, np.asarray([row[name] for row in rows], dtype)
                )
                for name, dtype in COLUMNS
            }
        self._parts.append(columns)
        self._count += len(columns["id"])

    def _records(self) -> Records:
        columns = {}
        for name, dtype in COLUMNS:
            pieces = [part.pop(name) for part in self._parts]  # so that only one column is doubled
            columns[name] = np.concatenate(pieces) if pieces else np.zeros(0, dtype)
        return Records(**columns, lists=[text.decode() for text in self._lists])

    def _problem(self, line: int, text: str) -> None:
        problem = Problem(self._path, line, text)
        if self._strict:
            raise TraceError(str(problem))
        if len(self._problems) < PROBLEMS_MAX:
            self._problems.append(problem)
        else:
            self._unlisted += 1


def _out_of_order(trace: Trace) -> list[Problem]:
    """Ids that do not ascend: real files have them, strict readers want none.

    Writers that took the same id are no sign that anything is missing, nor is the gap behind it
    where each of them went on counting: 19, 19, 21.
    """
    ids = trace.records.id
    steps = np.diff(ids)
    gaps = np.flatnonzero(steps > 1)
    firsts = np.flatnonzero(np.append(True, steps != 0))
    alike = gaps - firsts[np.searchsorted(firsts, gaps, "right") - 1] + 1
    found = []
    for text, bad in (
        ("id {} is not above the one before it", np.flatnonzero(steps < 0)),
        ("id {} leaves a gap to the one before it", gaps[steps[gaps] > alike]),
    ):
        if len(bad):
            first = text.format(int(ids[int(bad[0]) + 1]))
            more = f", and {len(bad) - 1} more" if len(bad) > 1 else ""
            found.append(Problem(trace.path, 0, f"{first}{more}"))
    return found


def _missing(records: Records, header: Header, given: set[str], path: str) -> dict[str, Any]:
    """What the header left out and the records tell."""
    found: dict[str, Any] = {}
    data = records.take(records.is_data)
    if not len(data):
        return found
    at_server = bool((data.operation >= STAGES).any())
    if "role" not in given:
        found["role"] = "server" if at_server else "worker"
    peers = data.node // 3
    servers_seen = int(peers[data.node % 3 == SERVER].max(initial=0)) + 1
    if "workers" not in given:
        ids = np.concatenate((data.src, data.dst))
        workers = int(peers.max()) + 1 if at_server else int(ids.max()) + 1 - servers_seen
        found["workers"] = max(workers, 1)
    rank = header.rank
    if "rank" not in given:
        sends = np.asarray(["_Send_" in name for name in OPERATIONS])[data.operation]
        own = np.unique(np.where(sends, data.src, data.dst)).tolist()
        rank = own[0] - (found.get("workers", header.workers) if at_server else 0)
        if len(own) > 1 or rank < 0:
            raise TraceError(
                f"{path}: says nowhere whose it is: neither its header nor its name has a rank, "
                f"and its records are of nodes {', '.join(map(str, own[:10]))}"
            )
        found["rank"] = rank
    if "servers" not in given:
        found["servers"] = rank + 1 if at_server else servers_seen
    return found
