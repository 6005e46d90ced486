"""A file that proves that it is whole. It has its name only once all of it is on the disk.

    | what was saved | digest, 16 bytes | its length, 8 bytes, little-endian | "MERCURY1" |

Whatever else has the name (cut short, changed on the disk, another program's) is damaged, and says
so before anything is read from it.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

_MARK = b"MERCURY1"
_DIGEST_BYTES, _LENGTH_BYTES = 16, 8
_END_BYTES = _DIGEST_BYTES + _LENGTH_BYTES + len(_MARK)
_READ_BYTES = 1 << 20


class DamagedError(Exception):
    """The file is not what was written."""


def _new_digest() -> Any:
    return hashlib.blake2b(digest_size=_DIGEST_BYTES)


class _Counted(io.RawIOBase):
    """What is written to it, and its digest."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.digest = _new_digest()
        self.length = 0
        self.failure: OSError | None = None

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        try:
            self._file.write(view)
        except OSError as error:
            self.failure = error
            raise
        self.digest.update(view)
        self.length += len(view)
        return len(view)


class _Inside(io.RawIOBase):
    """The part of a file that was saved, as a file of its own."""

    def __init__(self, file: BinaryIO, length: int) -> None:
        self._file, self._length, self._at = file, length, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._length}[whence]
        self._at = max(0, start + offset)
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")[: max(0, self._length - self._at)]
        self._file.seek(self._at)
        count = self._file.readinto(view)  # type: ignore[attr-defined]
        self._at += count
        return int(count)

    def close(self) -> None:
        self._file.close()
        super().close()


def temporary(path: Path) -> Path:
    """Where it is until it is whole."""
    return path.with_name(f".{path.name}.part")


def write(path: Path, dump: Callable[[Any], None]) -> None:
    """`dump` writes what is to be saved. If anything fails, there is nothing of that name new."""
    unfinished = temporary(path)
    try:
        with open(unfinished, "wb") as file:
            counted = _Counted(file)
            try:
                dump(counted)
            except Exception as error:  # torch has words of its own for a full disk
                raise counted.failure or error from None
            length = counted.length.to_bytes(_LENGTH_BYTES, "little")
            file.write(counted.digest.digest() + length + _MARK)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink()
        raise
    _sync(path.parent)


def _sync(folder: Path) -> None:
    """So that the name outlives the machine, too."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read(path: Path) -> BinaryIO:
    """What was saved, once all of it has been looked at; raises DamagedError, or an OSError."""
    file = open(path, "rb")  # noqa: SIM115
    try:
        length = _check(file)
    except BaseException:
        file.close()
        raise
    return io.BufferedReader(_Inside(file, length), _READ_BYTES)


def _check(file: BinaryIO) -> int:
    size = file.seek(0, io.SEEK_END)
    if size < _END_BYTES:
        raise DamagedError(f"it has {size} bytes, fewer than any")
    file.seek(size - _END_BYTES)
    end = file.read(_END_BYTES)
    if end[-len(_MARK) :] != _MARK:
        raise DamagedError("it does not end as it should: it was cut short, or is no part of one")
    length = int.from_bytes(end[_DIGEST_BYTES : -len(_MARK)], "little")
    if length != size - _END_BYTES:
        raise DamagedError(f"it has {size - _END_BYTES} bytes, and {length} were saved")
    file.seek(0)
    digest, left = _new_digest(), length
    while left:
        piece = file.read(min(left, _READ_BYTES))
        if not piece:
            raise DamagedError("it was cut short while it was read")
        digest.update(piece)
        left -= len(piece)
    if digest.digest() != end[:_DIGEST_BYTES]:
        raise DamagedError("what was saved has changed on the disk")
    return length
