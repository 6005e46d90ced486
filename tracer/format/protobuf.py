"""As much of the protobuf encoding as our files need, for single fields and for whole columns.

Columns are packed repeated sint64; they are coded and decoded with NumPy, all values at once.
Nothing here knows what the fields mean.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tracer.format.record import Array, Ints

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


class WireError(ValueError):
    """Bytes that are no protobuf message. `offset` is where."""

    def __init__(self, offset: int, what: str) -> None:
        super().__init__(what)
        self.offset = offset


def varint(number: int) -> bytes:
    """An unsigned number; negative ones as protobuf's int64, in ten bytes."""
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def int_field(number: int, value: int) -> bytes:
    return varint(number << 3 | VARINT) + varint(value)


def bytes_field(number: int, value: bytes) -> bytes:
    return varint(number << 3 | BYTES) + varint(len(value)) + value


def text_field(number: int, value: str) -> bytes:
    return bytes_field(number, value.encode())


def read_varint(data: bytes | memoryview, at: int) -> tuple[int, int]:
    value = 0
    for step in range(10):
        if at + step >= len(data):
            raise WireError(at, "ends inside a number")
        byte = data[at + step]
        value |= (byte & 0x7F) << (7 * step)
        if byte < 0x80:
            return value & ((1 << 64) - 1), at + step + 1
    raise WireError(at, "holds a number of more than ten bytes")


def message_fields(data: bytes | memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """(field number, value) of a message; fixed-size values are skipped."""
    view = memoryview(data)
    at = 0
    while at < len(view):
        begin = at
        tag, at = read_varint(view, at)
        kind = tag & 7
        if kind == VARINT:
            value, at = read_varint(view, at)
            yield tag >> 3, value
        elif kind == BYTES:
            size, at = read_varint(view, at)
            if at + size > len(view):
                raise WireError(begin, "ends inside a field")
            yield tag >> 3, view[at : at + size]
            at += size
        elif kind in (FIXED64, FIXED32):
            at += 8 if kind == FIXED64 else 4
        else:
            raise WireError(begin, "holds a field of an unknown kind")


def packed(values: Array) -> bytes:
    """Signed numbers, zigzag coded, one after another."""
    signed = values.astype(np.int64)
    rest = ((signed << 1) ^ (signed >> 63)).view(np.uint64)
    if not len(rest):
        return b""
    width = 1
    top = int(rest.max())
    while top > 0x7F:
        top >>= 7
        width += 1
    table = np.empty((len(rest), width), np.uint8)
    used = np.ones((len(rest), width), np.bool_)
    for place in range(width):
        table[:, place] = (rest & np.uint64(0x7F)).astype(np.uint8)
        used[:, place] = (rest != 0) | (place == 0)
        rest = rest >> np.uint64(7)
    table[:, :-1] |= (used[:, 1:] * np.uint8(0x80)).astype(np.uint8)
    return table[used].tobytes()


def unpacked(data: memoryview) -> Ints:
    """The numbers that `packed` wrote."""
    raw = np.frombuffer(data, np.uint8)
    if not len(raw):
        return np.zeros(0, np.int64)
    ends = np.flatnonzero(raw < 0x80)
    if not len(ends) or ends[-1] != len(raw) - 1:
        raise WireError(0, "ends inside a number")
    begins = np.concatenate(([0], ends[:-1] + 1))
    width = int((ends - begins).max()) + 1
    if width > 10:
        raise WireError(0, "holds a number of more than ten bytes")
    value = np.zeros(len(ends), np.uint64)
    for place in range(width):
        at = begins + place
        inside = at <= ends
        part = (raw[np.minimum(at, ends)] & 0x7F).astype(np.uint64) << np.uint64(7 * place)
        value |= np.where(inside, part, np.uint64(0))
    decoded: Ints = (value >> np.uint64(1)).view(np.int64) ^ -(value & np.uint64(1)).view(np.int64)
    return decoded
