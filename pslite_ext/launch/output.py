"""What a child prints: cut into lines, and kept in a file as long as that takes it.

Neither is shared between threads. What a line costs does not depend on those before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO

# A progress bar never ends its line: so much is told as one.
LINE_BYTES_MAX = 1 << 16


class LineCutter:
    """Bytes in, lines out, without their ends."""

    def __init__(self) -> None:
        self._begun = bytearray()  # a line whose end has not come

    def take(self, some: bytes) -> Iterator[str]:
        *ended, rest = some.split(b"\n")
        for part in ended:
            self._begun += part
            yield self._told()
        self._begun += rest
        if len(self._begun) >= LINE_BYTES_MAX:
            yield self._told()

    def rest(self) -> Iterator[str]:
        if self._begun:
            yield self._told()

    def _told(self) -> str:
        line = self._begun.decode(errors="replace")
        self._begun.clear()
        return line


class Log:
    """A file that is given up when it takes no more; without a path, nothing is kept."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Log:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()

    def write(self, some: bytes) -> Iterator[str]:
        """A line, if from here on nothing is kept."""
        if self._path is None:
            return
        try:
            if self._file is None:
                self._file = self._path.open("wb", buffering=0)
            while some:
                some = some[self._file.write(some) :]
        except OSError as error:
            yield f"(this output is not kept from here on: {self._path}: {error.strerror})"
            self._path = None
            self._close()

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
