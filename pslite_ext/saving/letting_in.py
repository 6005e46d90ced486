"""How a worker that comes while the job runs gets what the others have.

The first worker that is in lets it in, between two steps: it gives its state to the servers, as
first values in pieces, and the newcomer fetches them, each as soon as it is there. Meanwhile the
others wait at their next sums for the worker that gives: so nothing is copied first, and the
newcomer loads each part of the state while the next ones come. What it has, the servers forget.

    newcomer             first worker                        all
    ready                takes: nobody else lets it in
                         its state, in pieces
    has                  servers expect it                   in

Each piece is two tensors: how many bytes, and these. One of 0 bytes ends a part, and a part
without any ends all. The first part is what JSON can say.
"""

from __future__ import annotations

import ctypes
import io
import json
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, TypeVar

from pslite_ext import _core
from pslite_ext.errors import InternalError, PeerLostError
from pslite_ext.saving.exchange import key_of, memory

PIECE_BYTES = 8 << 20  # all pieces but the last
AHEAD = 8  # pieces that the newcomer asks for before they are there
PART_BYTES = 64 << 20  # the newcomer loads so much at a time
PRIORITY = -(1 << 20)  # below all gradients
# As the core tells one from another: its rank, and how many have had that before.
Newcomer = tuple[int, int]
# Since the servers have all of it, and as long again as that has taken: the others stand still.
LOADS_WITHIN_S = 60.0
_SIZE_BYTES = 8
_Buffer = Any  # ctypes' array of bytes
_Ask = Callable[[], _Buffer]  # which waits
_Value = TypeVar("_Value")


def _new_buffer(size: int) -> _Buffer:
    return (ctypes.c_char * size)()


class Pieces:
    """The tensors that carry one newcomer's state."""

    def __init__(self, newcomer: Newcomer) -> None:
        self._newcomer = newcomer
        self._keys: list[int] = []

    def tensor(self, what: str, number: int, size: int) -> _core.Tensor:
        key = key_of(f"newcomer/{self._newcomer[0]}/{self._newcomer[1]}/{what} {number}")
        self._keys.append(key)
        return _core.Tensor(key, "a newcomer's state", "int8", [size])

    def release(self, keep: int = 0) -> None:
        """All but the last `keep` that were made."""
        old = max(0, len(self._keys) - keep)
        _core.release(self._keys[:old])
        del self._keys[:old]


class Given(io.RawIOBase):
    """What is written here goes to the newcomer; `end` waits until the servers have all of it."""

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces
        self._number = 0
        self._piece, self._filled = _new_buffer(PIECE_BYTES), 0
        self._begun = False  # a part
        self._works: deque[tuple[_core.Tensor, _core.Work]] = deque()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        at = 0
        self._begun = self._begun or len(view) > 0
        while at < len(view):
            some = view[at : at + PIECE_BYTES - self._filled]
            memoryview(self._piece).cast("B")[self._filled : self._filled + len(some)] = some
            self._filled += len(some)
            at += len(some)
            if self._filled == PIECE_BYTES:
                self._give(self._piece)
                self._piece, self._filled = _new_buffer(PIECE_BYTES), 0
        return len(view)

    def _give(self, piece: _Buffer) -> None:
        size = _new_buffer(_SIZE_BYTES)
        size.raw = ctypes.sizeof(piece).to_bytes(_SIZE_BYTES, "little")
        for what, buffer in (("size", size), ("piece", piece)):
            if length := ctypes.sizeof(buffer):
                tensor = self._pieces.tensor(what, self._number, length)
                self._works.append((tensor, tensor.first_value(memory(buffer))))
        self._number += 1
        while len(self._works) > 4 * AHEAD:
            self._works.popleft()[1].wait()

    def end_part(self) -> None:
        if not self._begun:
            return
        self._begun = False
        if self._filled:
            last = _new_buffer(self._filled)
            ctypes.memmove(last, self._piece, self._filled)
            self._give(last)
            self._filled = 0
        self._give(_new_buffer(0))

    def end(self) -> None:
        for _ in range(AHEAD + 1):  # the newcomer asks for so many sizes more
            self._give(_new_buffer(0))
        for _, work in self._works:
            work.wait()


class Taken:
    """What was given: each part as a file, while the next ones come."""

    def __init__(self, newcomer: Newcomer) -> None:
        self._pieces = Pieces(newcomer)
        self._sizes = deque(self._ask("size", number, _SIZE_BYTES) for number in range(AHEAD))
        self._number = 0
        self.parts: Iterator[BinaryIO] = self._parts()

    def _parts(self) -> Iterator[BinaryIO]:
        under_way: deque[_Ask | None] = deque()  # None: a part ends
        part: list[memoryview] = []
        before, ended = -1, False
        while under_way or not ended:
            if len(under_way) < AHEAD and not ended:
                size = self._next_size()
                ended, before = size == before == 0, size
                under_way.append(self._ask("piece", self._number - 1, size) if size else None)
            elif (ask := under_way.popleft()) is not None:
                part.append(memoryview(ask()).cast("B"))
            elif part:
                yield io.BufferedReader(_Joined(part), PIECE_BYTES)
                part = []
        for ask in self._sizes:
            ask()
        self._pieces.release()

    def _next_size(self) -> int:
        size = int.from_bytes(self._sizes.popleft()().raw, "little")
        self._sizes.append(self._ask("size", self._number + AHEAD, _SIZE_BYTES))
        self._number += 1
        if self._number % AHEAD == 0:
            self._pieces.release(keep=4 * AHEAD)
        return size

    def _ask(self, what: str, number: int, size: int) -> _Ask:
        buffer = _new_buffer(size)
        tensor = self._pieces.tensor(what, number, size)
        work = tensor.pull_memory(memory(buffer), PRIORITY)

        def answer() -> _Buffer:
            work.wait()
            return buffer

        return answer


class _Joined(io.RawIOBase):
    """Pieces as one file."""

    def __init__(self, pieces: list[memoryview]) -> None:
        self._pieces = pieces
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        length = sum(map(len, self._pieces))
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: length}[whence]
        self._at = max(0, start + offset)
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        number, begin = divmod(self._at, PIECE_BYTES)
        if number >= len(self._pieces):
            return 0
        view = memoryview(buffer).cast("B")
        some = self._pieces[number][begin : begin + len(view)]
        view[: len(some)] = some
        self._at += len(some)
        return len(some)


def grouped(values: Iterable[_Value], size: Callable[[_Value], int]) -> Iterator[list[_Value]]:
    """As parts of the state; `size` in bytes."""
    group, its_size = [], 0
    for value in values:
        group.append(value)
        its_size += size(value)
        if its_size >= PART_BYTES:
            yield group
            group, its_size = [], 0
    if group:
        yield group


def give(newcomer: Newcomer, words: dict[str, Any], parts: Iterator[Callable[[Any], None]]) -> bool:
    """Of the first worker, between two steps; whether it is in. `words`: what JSON can say; each of
    `parts` writes a part of the state to a file."""
    pieces, began = Pieces(newcomer), time.monotonic()
    try:
        _core.say_admission(newcomer, "takes")
        _core.wait_admission(newcomer, "takes")
        given = Given(pieces)
        given.write(json.dumps({**words, "standing": _core.standing()}).encode())
        given.end_part()
        for dump in parts:
            dump(given)
            given.end_part()
        given.end()
        within_s = LOADS_WITHIN_S + time.monotonic() - began
        if not _core.wait_admission(newcomer, "has", within_s):
            _core.do_without(newcomer, f"it has not loaded in {within_s:.0f} s what it was given")
            _core.wait_admission(newcomer, "has")  # it is gone, unless it has just then
        try:
            _core.let_in(newcomer)
        except InternalError as error:  # a sum has copies of who had its place before
            _core.do_without(newcomer, f"{error}; start it again")
            _core.wait_admission(newcomer, "in")  # raises what has become of it
        _core.say_admission(newcomer, "in")
        _core.wait_admission(newcomer, "in")
    except PeerLostError:
        _core.check()  # the job's own failure
        pieces.release()
        return False
    return True


def take(newcomer: Newcomer) -> tuple[dict[str, Any], Iterator[BinaryIO]]:
    """Of the newcomer: what it is given, part by part."""
    _core.say_admission(newcomer, "ready")
    parts = Taken(newcomer).parts
    return json.load(next(parts)), parts


def enter(newcomer: Newcomer, standing: str) -> None:
    """Of the newcomer, once it has all that it was given; returns when it is in."""
    _core.say_admission(newcomer, "has")
    _core.wait_admission(newcomer, "in")
    _core.enter(standing)
