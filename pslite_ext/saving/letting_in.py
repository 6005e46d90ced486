"""How a worker that comes while the job runs gets what the others have.

The first worker that is in lets it in, between two steps: it gives its state to the servers, as
first values in pieces, and the newcomer fetches them. Meanwhile the others wait at their next sums
for the worker that gives. What the newcomer has, the servers may forget.

    newcomer             first worker                        all
    ready                takes: nobody else lets it in
                         its state, in pieces
    has                  servers expect it                   in
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import struct
from typing import Any

from pslite_ext import _core
from pslite_ext.errors import PeerLostError

PIECE_BYTES = 8 << 20
PRIORITY = -(1 << 20)  # below all gradients
_HEAD = struct.Struct("<QQ")  # bytes of the words, and of the state
# As the core tells one from another: its rank, and how many have had that before.
Newcomer = tuple[int, int]


class Pieces:
    """The tensors that carry one newcomer's state."""

    def __init__(self, newcomer: Newcomer) -> None:
        self._newcomer = newcomer
        self.keys: list[int] = []

    def tensor(self, number: int, size: int) -> _core.Tensor:
        text = f"newcomer/{self._newcomer[0]}/{self._newcomer[1]}/{number}"
        key = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
        self.keys.append(key)
        return _core.Tensor(key, "a newcomer's state", "int8", [size])


def _memory(buffer: Any, begin: int, size: int) -> _core.Memory:
    return buffer, ctypes.addressof(buffer) + begin, size


def _cut(size: int) -> list[tuple[int, int]]:
    """Where pieces begin, and their sizes."""
    return [(at, min(PIECE_BYTES, size - at)) for at in range(0, size, PIECE_BYTES)]


def give(newcomer: Newcomer, words: dict[str, Any], state: bytes | bytearray) -> bool:
    """Of the first worker, between two steps; whether it is in. `words`: what JSON can say."""
    pieces = Pieces(newcomer)
    try:
        _core.say_admission(newcomer, "takes")
        _core.wait_admission(newcomer, "takes")
        said = json.dumps({**words, "standing": _core.standing()}).encode()
        head = _HEAD.pack(len(said), len(state))
        _put(pieces, head, said + state)
        _core.wait_admission(newcomer, "has")
        _core.let_in(newcomer)
        _core.say_admission(newcomer, "in")
        _core.wait_admission(newcomer, "in")
    except PeerLostError:
        _core.check()  # the job's own failure
        _core.release(pieces.keys)
        return False
    return True


def _put(pieces: Pieces, head: bytes, data: bytes) -> None:
    works = []
    for number, (part, begin, size) in enumerate(
        [(head, 0, len(head)), *((data, at, size) for at, size in _cut(len(data)))]
    ):
        buffer = (ctypes.c_char * size).from_buffer_copy(part, begin)
        tensor = pieces.tensor(number, size)
        works.append((tensor, tensor.first_value(_memory(buffer, 0, size))))
    for _, work in works:
        work.wait()


def take(newcomer: Newcomer) -> tuple[dict[str, Any], memoryview]:
    """Of the newcomer: what it was given."""
    _core.say_admission(newcomer, "ready")
    pieces = Pieces(newcomer)
    head = _get(pieces, 0, _HEAD.size)
    words, state = _HEAD.unpack(head)
    data = _get(pieces, 1, words + state)
    _core.release(pieces.keys)
    return json.loads(bytes(data[:words])), data[words:]


def _get(pieces: Pieces, first: int, size: int) -> memoryview:
    data = bytearray(size)
    buffer = (ctypes.c_char * size).from_buffer(data)
    works = []
    for number, (begin, piece) in enumerate(_cut(size), first):
        tensor = pieces.tensor(number, piece)
        works.append((tensor, tensor.pull_memory(_memory(buffer, begin, piece), PRIORITY)))
    for _, work in works:
        work.wait()
    return memoryview(data)


def enter(newcomer: Newcomer, standing: str) -> None:
    """Of the newcomer, once it has all that it was given; returns when it is in."""
    _core.say_admission(newcomer, "has")
    _core.wait_admission(newcomer, "in")
    _core.enter(standing)
