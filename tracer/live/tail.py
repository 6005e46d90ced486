"""What is new in a trace file that is still being written, in either form.

A tail reads forward and keeps only what is no whole line or piece yet. Of a file that has been
written for hours it takes the header and the last few megabytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

from tracer.errors import TraceError
from tracer.format import binary
from tracer.format.columns import parse_lines
from tracer.format.header import is_column_line, parse_header
from tracer.format.protobuf import WireError, read_varint
from tracer.format.reader import RECORD
from tracer.format.record import COLUMNS, Array, Header, Records

HEADER_BYTES_MAX = 1 << 16
KEPT_BYTES = 4 << 20  # of a file that is longer when it is first looked at
READ_BYTES_MAX = 32 << 20  # at once
PIECE_HEAD_BYTES = 20  # a tag and a size at most


@dataclass
class News:
    """What came since the last look; `records` without their dependency lists."""

    records: Records = field(default_factory=Records.empty)
    notes: list[str] = field(default_factory=list)


class Tail:
    """Follows one file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.header: Header | None = None  # once it has been written
        self._at = 0  # in the file: all before it has been taken
        self._binary = path.suffix == ".dlc"

    def look(self) -> News:
        """What is new. A TraceError if this is not a trace, or not one of ours."""
        try:
            with open(self.path, "rb") as file:
                if self.header is None and not self._begin(file):
                    return News()
                file.seek(self._at)
                new = file.read(READ_BYTES_MAX)
        except OSError as error:
            raise TraceError(f"{self.path}: cannot be read: {error.strerror or error}") from error
        return self._pieces(new) if self._binary else self._lines(new)

    def _begin(self, file: IO[bytes]) -> bool:
        """Takes the header, if all of it is there, and passes over what is old."""
        start = file.read(HEADER_BYTES_MAX)
        size = file.seek(0, 2)
        if self._binary:
            found = self._binary_header(start)
            while found:
                file.seek(self._at)
                head = file.read(PIECE_HEAD_BYTES)
                try:
                    length, begun = read_varint(head, read_varint(head, 0)[1])
                except WireError:
                    break
                if size - (self._at + begun + length) < KEPT_BYTES:
                    break
                self._at += begun + length
            return found
        lines: list[str] = []
        at = 0
        for line in start.splitlines(keepends=True):
            if RECORD.match(line):
                raise self._not_ours()
            at += len(line)
            lines.append(line.decode(errors="replace"))
            if is_column_line(lines[-1]) and line.endswith(b"\n"):
                break
        else:
            self._must_be_short(start)
            return False
        self.header, _ = parse_header(lines, str(self))
        self._at = at
        if size - self._at > KEPT_BYTES:
            file.seek(size - KEPT_BYTES)
            file.readline()
            self._at = file.tell()
        return True

    def _binary_header(self, start: bytes) -> bool:
        try:
            for kind, body, after in binary.pieces(memoryview(start)):
                if kind != binary.HEADER:
                    raise TraceError(
                        f"{self.path}: is not a trace: it does not begin with a header"
                    )
                self.header = binary.decode_header(body)
                self._at = after
                return True
        except WireError:
            self._must_be_short(start)
        return False

    def _must_be_short(self, start: bytes) -> None:
        """A header that is not whole yet is a short one."""
        if len(start) >= HEADER_BYTES_MAX:
            raise self._not_ours()

    def _not_ours(self) -> TraceError:
        return TraceError(f"{self.path}: is not a trace, or of another tool's form")

    def _lines(self, new: bytes) -> News:
        whole = new.rfind(b"\n") + 1
        if not whole:
            return News()
        self._at += whole
        lines = parse_lines(np.frombuffer(new[:whole], np.uint8), {})
        odd = np.ones(len(lines.begin), np.bool_)
        odd[lines.regular] = False
        texts = [new[lines.begin[i] : lines.end[i]] for i in np.flatnonzero(odd).tolist()]
        notes = [text[1:].decode(errors="replace").strip() for text in texts if text[:1] == b"#"]
        return News(_records([lines.columns]), notes)

    def _pieces(self, new: bytes) -> News:
        blocks: list[dict[str, Array]] = []
        notes: list[str] = []
        taken = 0
        try:
            for kind, body, after in binary.pieces(memoryview(new)):
                if kind == binary.BLOCK:
                    blocks.append(binary.decode_block(body, []))
                elif kind == binary.NOTE:
                    notes.append(binary.decode_note(body))
                taken = after
        except WireError as error:
            if len(new) >= READ_BYTES_MAX and not taken:
                raise TraceError(f"{self.path}: is damaged: {error}") from None
        self._at += taken
        if not blocks:
            return News(notes=notes)
        return News(_records(blocks), notes)

    def __str__(self) -> str:
        return str(self.path)


def _records(blocks: list[dict[str, Array]]) -> Records:
    columns: dict[str, Any] = {
        name: np.concatenate([block[name] for block in blocks]) for name, _ in COLUMNS
    }
    return Records(**columns)
