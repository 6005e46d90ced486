"""What workers tell each other of their checkpoints."""

from __future__ import annotations

import ctypes
import hashlib
import io
from collections.abc import Sequence
from typing import Any, BinaryIO, NamedTuple

from pslite_ext import _core
from pslite_ext.errors import InvalidArgumentError

PIECE_BYTES = 16 << 20


class Seat(NamedTuple):
    """This worker's among those of its job."""

    rank: int
    workers: int  # at first
    places: int  # for workers, with those that may come


class Exchange:
    """Of all workers of a job, about checkpoint number `number` of the script."""

    def __init__(self, number: int, seat: Seat) -> None:
        self._number = number
        self._rank, self._places = seat.rank, seat.places

    def gather(self, what: str, mine: Sequence[int]) -> list[list[int]]:
        """By place, its worker's numbers: as many of each; where nobody is, zeros. `what`: another
        word for other numbers."""
        if self._places == 1:
            return [list(mine)]
        count = len(mine)
        table = (ctypes.c_int64 * (self._places * count))()
        for place, number in enumerate(mine, self._rank * count):
            table[place] = number
        tensor = _core.Tensor(self._key(what), "checkpoints", "int64", [len(table)])
        tensor.sum_memory(memory(table)).wait()
        return [table[rank * count : (rank + 1) * count] for rank in range(self._places)]

    def there(self) -> list[int]:
        """Ranks of those that the job has not lost; all workers hear the same."""
        if not _core.elastic():
            return list(range(self._places))
        return [rank for rank, row in enumerate(self.gather("there", [1])) if row[0]]

    def all_say(self, what: str, word: str) -> bool:
        """Whether all say the same. As a letter: in traces it is no part of training.

        Those that have left say nothing, which is the same only where the job goes on without
        them. There it is compared as steps are, so that servers forget it.
        """
        if self._places == 1:
            return True
        try:
            if _core.elastic():
                _core.claim_steps(self._key(what), word)
            else:
                _core.claim_model(self._key(what), [(word, "of the checkpoint")])
        except InvalidArgumentError:
            return False
        return True

    def of_one(self, file: BinaryIO | None, size: int) -> BinaryIO:
        """All that is in the one worker's file who has it, on each. The others add nothing."""
        pieces = []
        buffer = bytearray(PIECE_BYTES)
        shared = (ctypes.c_char * PIECE_BYTES).from_buffer(buffer)
        tensor = _core.Tensor(self._key("piece"), "a checkpoint", "int8", [PIECE_BYTES])
        for begin in range(0, size, PIECE_BYTES):
            piece = b"" if file is None else file.read(PIECE_BYTES)
            buffer[:] = piece.ljust(PIECE_BYTES, b"\0")
            tensor.sum_memory(memory(shared)).wait()
            pieces.append(bytes(buffer[: min(PIECE_BYTES, size - begin)]))
        return io.BytesIO(b"".join(pieces))

    def _key(self, what: str) -> int:
        return key_of(f"checkpoint/{self._number}/{what}")


def key_of(text: str) -> int:
    """Of a tensor or a claim: 64 bits that all workers make of the same words."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def memory(buffer: Any) -> _core.Memory:
    """Of ctypes' arrays."""
    return buffer, ctypes.addressof(buffer), ctypes.sizeof(buffer)
