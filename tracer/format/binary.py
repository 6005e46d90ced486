"""The binary form of a trace (.dlc): one protobuf message, published in docs/trace.proto.

The file is a sequence of the fields of `Trace`: the header, then blocks of records as columns,
with notes between them. Each piece is complete in itself, so a file that breaks off is readable up
to the break.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tracer.errors import TraceError
from tracer.format import record as rec
from tracer.format.protobuf import (
    BYTES,
    WireError,
    bytes_field,
    int_field,
    message_fields,
    packed,
    read_varint,
    text_field,
    unpacked,
)
from tracer.format.record import Array, Header, Note, Problem, Records, Trace

MAGIC = "DLC1"
HEADER, BLOCK, NOTE = 1, 2, 3
BLOCK_RECORDS = 16384
# Columns are fields 1 to 16 of Block in the order of COLUMNS; these two hold differences.
DELTAS = {"id", "time"}
LISTS = 17
TEXT_FIELDS = ("host", "run", "mode", "training", "role")  # fields 2 to 6 of Header
INT_FIELDS = ("rank", "workers", "servers", "version")  # fields 7 to 10
EXTRA = 11


def is_binary_trace(start: bytes) -> bool:
    return start[:1] == b"\x0a" and MAGIC.encode() in start[:9]


def encode(trace: Trace) -> Iterator[bytes]:
    yield bytes_field(HEADER, _encode_header(trace.header))
    known: dict[str, int] = {}
    notes = sorted(trace.notes, key=lambda note: note.before)
    done = 0
    for note in [*notes, Note(len(trace.records), "")]:
        while done < note.before:
            end = min(note.before, done + BLOCK_RECORDS)
            yield bytes_field(BLOCK, _encode_block(trace.records, done, end, known))
            done = end
        if note.text:
            yield bytes_field(NOTE, text_field(1, note.text))


def _encode_header(header: Header) -> bytes:
    out = text_field(1, MAGIC)
    for number, name in enumerate(TEXT_FIELDS, 2):
        out += text_field(number, getattr(header, name))
    for number, name in enumerate(INT_FIELDS, 2 + len(TEXT_FIELDS)):
        out += int_field(number, getattr(header, name))
    return out + b"".join(text_field(EXTRA, line) for line in header.extra)


def _encode_block(records: Records, begin: int, end: int, known: dict[str, int]) -> bytes:
    out = []
    rows = slice(begin, end)
    new: list[str] = []
    for number, (name, _) in enumerate(rec.COLUMNS, 1):
        values = records.column(name)[rows]
        if name in DELTAS:
            values = np.diff(values, prepend=0)
        elif name == "dep_num":
            values = _renumbered(records, rows, values, known, new)
        if len(values) and not values.any():
            continue  # a column of zeros is left out
        out.append(bytes_field(number, packed(values)))
    out.append(int_field(LISTS + 1, end - begin))
    return b"".join([*out, *(text_field(LISTS, text) for text in new)])


def _renumbered(
    records: Records, rows: slice, values: Array, known: dict[str, int], new: list[str]
) -> Array:
    """Lists are numbered in the order in which the file needs them."""
    values = values.copy()
    listed = np.flatnonzero(records.dep_kind[rows] == rec.DEP_LIST)
    for place in listed.tolist():
        text = records.lists[int(values[place])]
        if text not in known:
            known[text] = len(known)
            new.append(text)
        values[place] = known[text]
    return values


def pieces(view: memoryview) -> Iterator[tuple[int, memoryview, int]]:
    """(kind, body, where the next one begins) of each; a WireError where it breaks off."""
    at = 0
    while at < len(view):
        begin = at
        tag, at = read_varint(view, at)
        if tag & 7 != BYTES:
            raise WireError(begin, "holds something that does not belong in a trace")
        size, at = read_varint(view, at)
        if at + size > len(view):
            raise WireError(begin, "breaks off")
        body, at = view[at : at + size], at + size
        yield tag >> 3, body, at


def decode(data: bytes, path: str, strict: bool) -> Trace:
    """The trace in `data`; what follows a break is dropped, or an error if strict."""
    header: Header | None = None
    blocks: list[dict[str, Array]] = []
    lists: list[str] = []
    notes: list[Note] = []
    problems: list[Problem] = []
    count = 0
    begin = 0
    try:
        for kind, body, after in pieces(memoryview(data)):
            if kind == HEADER:
                header = decode_header(body)
            elif kind == BLOCK:
                blocks.append(decode_block(body, lists))
                count += len(blocks[-1]["id"])
            elif kind == NOTE:
                notes.append(Note(count, decode_note(body)))
            begin = after
    except WireError as error:
        place = error.offset if error.offset else begin
        text = f"{error} at byte {place}; the {count} records before it are good"
        if strict or header is None:
            raise TraceError(f"{path}: {text}") from None
        problems.append(Problem(path, 0, text))
    if header is None:
        raise TraceError(f"{path}: has no header; it is no .dlc trace, or was cut at its start")
    columns = {
        name: np.concatenate([b[name] for b in blocks]) if blocks else np.zeros(0, dtype)
        for name, dtype in rec.COLUMNS
    }
    records = Records(**columns, lists=lists)
    if len(records) and int(records.operation.max()) >= len(rec.OPERATIONS):
        raise TraceError(f"{path}: holds an operation of a newer version; update mercury-ps")
    if len(records) and int(records.operation.min()) < 0:
        raise TraceError(f"{path}: holds an operation below 0, which there is not; it is damaged")
    listed = records.dep_num[records.dep_kind == rec.DEP_LIST]
    if len(listed) and (int(listed.max()) >= len(lists) or int(listed.min()) < 0):
        raise TraceError(f"{path}: names a dependency list that it does not hold; it is damaged")
    return Trace(header, records, notes, path, problems)


def _view(value: int | memoryview | bytes) -> memoryview:
    if isinstance(value, int):
        raise WireError(0, "holds a number where text belongs")
    return memoryview(value)


def decode_header(body: memoryview) -> Header:
    values: dict[str, Any] = {}
    extra: list[str] = []
    magic = ""
    for number, value in message_fields(body):
        if number == EXTRA:
            extra.append(bytes(_view(value)).decode(errors="replace"))
        elif number == 1:
            magic = bytes(_view(value)).decode(errors="replace")
        elif 2 <= number < 2 + len(TEXT_FIELDS):
            values[TEXT_FIELDS[number - 2]] = bytes(_view(value)).decode(errors="replace")
        elif 2 + len(TEXT_FIELDS) <= number < EXTRA and isinstance(value, int):
            values[INT_FIELDS[number - 2 - len(TEXT_FIELDS)]] = min(value, rec.NODES_MOST + 1)
    if magic != MAGIC:
        raise WireError(0, "has a header of another kind of file")
    for name, allowed in (("mode", rec.MODES), ("training", rec.TRAININGS), ("role", rec.ROLES)):
        if values.get(name, allowed[0]) not in allowed:
            raise WireError(0, f"has a header whose {name} is none of {', '.join(allowed)}")
    if any(int(values.get(name, 0)) > rec.NODES_MOST for name in INT_FIELDS):
        raise WireError(0, f"has a header with numbers above {rec.NODES_MOST}")
    return Header(**values, extra=tuple(extra))


def decode_note(body: memoryview) -> str:
    said = next((v for n, v in message_fields(body) if n == 1), b"")
    return bytes(_view(said)).decode(errors="replace")


def decode_block(body: memoryview, lists: list[str]) -> dict[str, Array]:
    columns: dict[str, Array] = {}
    size = -1
    new: list[str] = []
    for number, value in message_fields(body):
        if 1 <= number <= len(rec.COLUMNS):
            name, dtype = rec.COLUMNS[number - 1]
            decoded = unpacked(_view(value))
            if name in DELTAS:
                decoded = np.cumsum(decoded)
            limit = np.iinfo(dtype)
            if len(decoded) and (decoded.min() < limit.min or decoded.max() > limit.max):
                raise WireError(0, f"holds a {name} that is out of range")
            columns[name] = decoded.astype(dtype)
        elif number == LISTS:
            new.append(bytes(_view(value)).decode(errors="replace"))
        elif number == LISTS + 1 and isinstance(value, int):
            size = value
    if size < 0 or size > 1 << 24:
        raise WireError(0, "holds a block that does not say its size")
    for name, dtype in rec.COLUMNS:
        columns.setdefault(name, np.zeros(size, dtype))
        if len(columns[name]) != size:
            raise WireError(0, f"holds a block whose column {name} has another length")
    lists.extend(new)
    return columns
