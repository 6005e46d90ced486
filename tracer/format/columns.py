"""Many lines of a trace's body at once, as NumPy columns.

Takes lines in the regular form: 13 words (`OP:=` is one), plain numbers, a known operation. All
others it leaves to line.py, so it need not be right about anything odd: it must only notice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tracer.format import record as rec
from tracer.format.line import LIST
from tracer.format.record import Array, Bools, Ints

Bytes = npt.NDArray[np.uint8]
WORDS = 13
DASH = ord("-")
LONGEST = 18  # digits that fit 64 bits


@dataclass
class Lines:
    """Where lines begin and end, which were understood, and the columns of those."""

    begin: Ints
    end: Ints
    regular: Ints  # numbers of the understood lines
    columns: dict[str, Array]


def parse_lines(raw: Bytes, lists: dict[bytes, int]) -> Lines:
    """`raw` holds whole lines, the last one's end included."""
    newline = np.flatnonzero(raw == 10)
    line_begin = np.concatenate(([0], newline[:-1] + 1))
    space = raw <= 32
    edges = np.flatnonzero(space[1:] != space[:-1]) + 1
    if not space[0]:
        edges = np.concatenate(([0], edges))
    begins, ends = edges[0::2], edges[1::2]
    word = np.searchsorted(begins, line_begin)
    count = np.diff(word, append=len(begins))
    first = word[count == WORDS]
    number = np.flatnonzero(count == WORDS)
    if not len(first):
        return Lines(line_begin, newline, number, {name: np.zeros(0, t) for name, t in rec.COLUMNS})

    padded = np.concatenate((raw, np.full(32, 10, np.uint8)))
    good = np.ones(len(first), np.bool_)

    def plain(place: int) -> Ints:
        value, fine = _numbers(padded, begins[first + place], ends[first + place])
        np.logical_and(good, fine, out=good)
        return value

    columns: dict[str, Array] = {
        name: plain(place) for place, name in enumerate(("id", "src", "dst", "length", "num_pp"))
    }
    columns["dep_type"], columns["d_time"] = plain(8), plain(9)
    seconds, micros = plain(10), plain(11)
    good &= (micros >= 0) & (micros < 1000000) & (seconds >= 0) & (seconds < 1 << 40)
    columns["time"] = seconds * 1000000 + micros
    good &= _is_mark(padded, begins[first + 5], ends[first + 5])
    columns["operation"] = _operations(padded, begins[first + 6], ends[first + 6])
    good &= columns["operation"] >= 0

    dashes = np.flatnonzero(raw == DASH)
    key, num, node, fine = _op_ids(padded, dashes, begins[first + 7], ends[first + 7])
    good &= fine
    columns["key"], columns["op_num"], columns["node"] = key, num, node
    good &= _depends(padded, dashes, begins[first + 12], ends[first + 12], lists, columns)

    for name, dtype in rec.COLUMNS:
        limit = np.iinfo(dtype)
        good &= (columns[name] >= limit.min) & (columns[name] <= limit.max)
    final = {name: columns[name][good].astype(dtype) for name, dtype in rec.COLUMNS}
    return Lines(line_begin, newline, number[good], final)


def _numbers(raw: Bytes, begin: Ints, end: Ints) -> tuple[Ints, Bools]:
    """The numbers between begin and end, and which of them are numbers."""
    negative = raw[begin] == DASH
    signed = bool(negative.any())
    size = end - begin - negative if signed else end - begin
    least, most = (int(size.min()), int(size.max())) if len(size) else (0, 0)
    value = np.zeros(len(begin), np.int64)
    worst = np.zeros(len(begin), np.uint8)
    at = end - 1
    for place in range(min(most, LONGEST)):
        digit = raw[at - place] - np.uint8(48)  # what is no digit comes out above 9
        if place >= least:
            digit = np.where(place < size, digit, np.uint8(0))
        np.maximum(worst, digit, out=worst)
        value += np.multiply(digit, 10**place, dtype=np.int64)
    fine: Bools = (worst <= 9) & (size > 0) & (size <= LONGEST)
    return (np.where(negative, -value, value) if signed else value), fine


def _is_mark(raw: Bytes, begin: Ints, end: Ints) -> Bools:
    fine: Bools = end - begin == 4
    for offset, byte in enumerate(b"OP:="):
        fine &= raw[begin + offset] == byte
    return fine


def _operations(raw: Bytes, begin: Ints, end: Ints) -> Ints:
    """The code of each operation's name; -1 for what has none, or is set-up."""
    width = 16
    words = np.lib.stride_tricks.sliding_window_view(raw, width)[begin]
    words = words * (np.arange(width) < (end - begin)[:, None]).astype(np.uint8)
    halves = np.ascontiguousarray(words).view(np.uint64)
    code = np.full(len(begin), -1, np.int64)
    for number, name in enumerate(rec.OPERATIONS):
        if number in rec.SETUP_CODES or len(name) > width:
            continue
        want = np.frombuffer(name.encode().ljust(width, b"\0"), np.uint64)
        code[(halves[:, 0] == want[0]) & (halves[:, 1] == want[1])] = number
    code[end - begin > width] = -1
    return code


def _op_ids(raw: Bytes, dashes: Ints, begin: Ints, end: Ints) -> tuple[Ints, Ints, Ints, Bools]:
    """key, number and node of `key-number-node`, where each has exactly two dashes."""
    if len(dashes) < 2:
        zeros = np.zeros(len(begin), np.int64)
        return zeros, zeros, zeros, np.zeros(len(begin), np.bool_)
    at = np.searchsorted(dashes, begin)
    fine = np.searchsorted(dashes, end) - at == 2
    at = np.minimum(at, len(dashes) - 2)
    one, two = np.where(fine, dashes[at], begin + 1), np.where(fine, dashes[at + 1], begin + 3)
    key, key_fine = _numbers(raw, begin, one)
    number, number_fine = _numbers(raw, one + 1, two)
    role = np.full(256, -1, np.int64)
    for code, letter in enumerate(rec.ROLE_LETTERS):
        role[ord(letter)] = code
    rank, rank_fine = _numbers(raw, np.minimum(two + 2, end), end)
    letter_role = role[raw[two + 1]]
    node = rank * len(rec.ROLES) + letter_role
    fine &= key_fine & number_fine & rank_fine & (letter_role >= 0) & (two + 2 < end)
    return key, number, node, fine


def _depends(
    raw: Bytes,
    dashes: Ints,
    begin: Ints,
    end: Ints,
    lists: dict[bytes, int],
    columns: dict[str, Array],
) -> Bools:
    """Enters the four dep columns; says which were understood."""
    size = len(begin)
    none = (end - begin == 2) & (raw[begin] == DASH) & (raw[begin + 1] == ord("1"))
    listed = raw[begin] == ord("(")
    kind = np.where(none, rec.DEP_NONE, np.where(listed, rec.DEP_LIST, rec.DEP_ONE))
    for name in ("dep_key", "dep_num", "dep_node"):
        columns[name] = np.zeros(size, np.int64)
    columns["dep_kind"] = kind
    fine = np.ones(size, np.bool_)
    single = np.flatnonzero(kind == rec.DEP_ONE)
    key, number, node, good = _op_ids(raw, dashes, begin[single], end[single])
    columns["dep_key"][single], columns["dep_num"][single] = key, number
    columns["dep_node"][single] = node
    fine[single] = good
    many = np.flatnonzero(listed)
    if len(many):
        text = raw.tobytes()
        places = []
        for one, two in zip(begin[many].tolist(), end[many].tolist()):
            item = text[one:two]
            place = lists.get(item)
            if place is None:
                place = -1
                if LIST.fullmatch(item.decode("latin-1")):
                    place = lists.setdefault(item, len(lists))
            places.append(place)
        columns["dep_num"][many] = places
        fine[many] = np.asarray(places) >= 0
    return fine
