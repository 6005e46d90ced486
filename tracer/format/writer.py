"""Traces as text and as binary: `write_trace` chooses by the name's ending."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tracer.format.binary import encode
from tracer.format.header import header_lines
from tracer.format.record import (
    COLUMNS,
    DEP_LIST,
    DEP_ONE,
    OPERATIONS,
    SETUP_CODES,
    Note,
    Records,
    Trace,
    node_text,
)
from tracer.output import whole_file

AT_ONCE = 100_000  # records turned to text before they are written


def write_trace(trace: Trace, path: str | Path) -> None:
    if str(path).endswith(".dlc"):
        with whole_file(path) as file:
            for piece in encode(trace):
                file.write(piece)
        return
    with whole_file(path) as file:
        for text in text_pieces(trace):
            file.write(text.encode())


def text_pieces(trace: Trace) -> Iterator[str]:
    """The text form, a piece at a time."""
    yield "\n".join(header_lines(trace.header)) + "\n"
    notes = sorted(trace.notes, key=lambda note: note.before)
    done = 0
    for note in [*notes, Note(len(trace.records), "")]:
        while done < note.before:
            end = min(note.before, done + AT_ONCE)
            yield "".join(record_lines(trace.records, done, end))
            done = end
        if note.text:
            yield f"# {note.text}\n"


def record_lines(records: Records, begin: int, end: int) -> Iterator[str]:
    names = {code: node_text(int(code)) for code in set(records.node[begin:end].tolist())}
    names.update((code, node_text(int(code))) for code in set(records.dep_node[begin:end].tolist()))
    lists = records.lists
    columns = [records.column(name)[begin:end].tolist() for name, _ in COLUMNS]
    for row in zip(*columns):
        (ident, src, dst, length, num_pp, operation, key, number, node) = row[:9]
        (dep_type, d_time, time, dep_kind, dep_key, dep_num, dep_node) = row[9:]
        if operation in SETUP_CODES:
            yield f"{ident} {src} {dst} {length} {num_pp} OP:= {OPERATIONS[operation]}\n"
            continue
        if dep_kind == DEP_ONE:
            depends = f"{dep_key}-{dep_num}-{names[dep_node]}"
        elif dep_kind == DEP_LIST:
            depends = lists[dep_num]
        else:
            depends = "-1"
        yield (
            f"{ident} {src} {dst} {length} {num_pp} OP:= {OPERATIONS[operation]} "
            f"{key}-{number}-{names[node]} {dep_type} {d_time} "
            f"{time // 1000000} {time % 1000000} {depends}\n"
        )
