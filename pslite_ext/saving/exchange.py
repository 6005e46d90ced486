"""What workers tell each other of their checkpoints."""

from __future__ import annotations

import ctypes
import hashlib
import io
from collections.abc import Sequence
from typing import Any, BinaryIO

from pslite_ext import _core

PIECE_BYTES = 16 << 20


class Ballot:
    """Each worker's numbers, as many of each. All workers ask for it equally often."""

    def __init__(self, key: int, rank: int, workers: int, columns: int) -> None:
        self._rank, self._workers, self._columns = rank, workers, columns
        self._sums = (ctypes.c_int64 * (workers * columns))()
        if workers > 1:
            self._tensor = _core.Tensor(key, "checkpoints", "int64", [len(self._sums)])

    def gather(self, mine: Sequence[int]) -> list[list[int]]:
        """By worker; waits for all to have told theirs."""
        count = self._columns
        assert len(mine) == count
        ctypes.memset(self._sums, 0, ctypes.sizeof(self._sums))
        for place, number in enumerate(mine, self._rank * count):
            self._sums[place] = number
        if self._workers > 1:
            self._tensor.sum_memory(_memory(self._sums)).wait()
        return [self._sums[rank * count : (rank + 1) * count] for rank in range(self._workers)]


class Exchange:
    """Of all workers of a job, about checkpoint number `number` of the script."""

    def __init__(self, number: int, rank: int, workers: int) -> None:
        self._number, self._rank, self._workers = number, rank, workers

    def ballot(self, what: str, columns: int) -> Ballot:
        """`what`: another word for each."""
        return Ballot(self._key(what), self._rank, self._workers, columns)

    def gather(self, what: str, mine: Sequence[int]) -> list[list[int]]:
        return self.ballot(what, len(mine)).gather(mine)

    def of_worker_0(self, file: BinaryIO | None, size: int) -> BinaryIO:
        """All that is in worker 0's file, on each worker. The others add nothing to it."""
        pieces = []
        buffer = bytearray(PIECE_BYTES)
        shared = (ctypes.c_char * PIECE_BYTES).from_buffer(buffer)
        tensor = _core.Tensor(self._key("piece"), "a checkpoint", "int8", [PIECE_BYTES])
        for begin in range(0, size, PIECE_BYTES):
            piece = b"" if file is None else file.read(PIECE_BYTES)
            buffer[:] = piece.ljust(PIECE_BYTES, b"\0")
            tensor.sum_memory(_memory(shared)).wait()
            pieces.append(bytes(buffer[: min(PIECE_BYTES, size - begin)]))
        return io.BytesIO(b"".join(pieces))

    def _key(self, what: str) -> int:
        text = f"checkpoint/{self._number}/{what}"
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def _memory(buffer: Any) -> _core.Memory:
    return buffer, ctypes.addressof(buffer), ctypes.sizeof(buffer)
