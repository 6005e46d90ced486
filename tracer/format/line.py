"""One line of a trace's body, read with care: for lines that the fast way of columns.py leaves."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tracer.format.record import (
    CODE,
    COLUMNS,
    DEP_LIST,
    DEP_NONE,
    DEP_ONE,
    ROLE_LETTERS,
    SETUP_CODES,
    node_code,
    node_text,
)

OP_ID = re.compile(r"(\d{1,9})-(-?\d{1,9})-([wsh])(\d{1,8})")
LIST = re.compile(r"\((-?\d{1,9}-[wsh]\d{1,8}\.)+\)")
ITEM = re.compile(r"(-?\d{1,9})-([wsh])(\d{1,8})\.")
_NUMBER = re.compile(r"-?\d{1,18}")
_LIMITS = {name: 1 << (8 * int(dtype[1]) - 1) for name, dtype in COLUMNS}


class LineError(ValueError):
    """What is wrong with a line, in a few words."""


def list_items(text: str) -> list[tuple[int, int]]:
    """(operation_num, node) of each item of a one-to-many dependency."""
    return [
        (int(number), node_code(ROLE_LETTERS.index(letter), int(rank)))
        for number, letter, rank in ITEM.findall(text)
    ]


def list_text(items: Iterable[tuple[int, int]]) -> str:
    return "(" + "".join(f"{number}-{node_text(node)}." for number, node in items) + ")"


def parse_line(line: str, lists: dict[bytes, int]) -> dict[str, int]:
    """The columns of one record; a list it depends on is entered into `lists`."""
    words = line.replace("OP:=", " ", 1).split()
    if "OP:=" not in line:
        raise LineError("is not a record: it has no 'OP:='")
    if len(words) not in (6, 12):
        raise LineError(f"has {len(words)} columns; a record has 12, or 6 for set-up")
    row = {name: 0 for name, _ in COLUMNS}
    for name, word in zip(("id", "src", "dst", "length", "num_pp"), words):
        row[name] = _number(name, word)
    operation = CODE.get(words[5])
    if operation is None:
        raise LineError(f"names the unknown operation '{words[5][:40]}'")
    row["operation"] = operation
    if len(words) == 6:
        if operation not in SETUP_CODES:
            raise LineError("ends after its operation, which only set-up records do")
        return row
    if operation in SETUP_CODES:
        raise LineError("is a set-up record with more than 6 columns")
    row["key"], row["op_num"], row["node"] = _op_id(words[6])
    row["dep_type"] = _number("dep_type", words[7])
    row["d_time"] = _number("d_time", words[8])
    seconds, microseconds = _number("time_sec", words[9]), _number("time_usec", words[10])
    if not 0 <= microseconds < 1000000 or not 0 <= seconds < 1 << 40:
        raise LineError(f"has no valid time: {words[9]} {words[10]}")
    row["time"] = seconds * 1000000 + microseconds
    _depends(words[11], row, lists)
    return row


def _number(name: str, word: str) -> int:
    if not _NUMBER.fullmatch(word):
        raise LineError(f"has '{word[:40]}' as {name}, which is not a number")
    number = int(word)
    limit = _LIMITS.get(name, 1 << 62)
    if not -limit <= number < limit:
        raise LineError(f"has {word} as {name}, which is out of range")
    return number


def _op_id(word: str) -> tuple[int, int, int]:
    found = OP_ID.fullmatch(word)
    if not found:
        raise LineError(f"has '{word[:40]}' where key-number-node belongs")
    key, number, letter, rank = found.groups()
    return int(key), int(number), node_code(ROLE_LETTERS.index(letter), int(rank))


def _depends(word: str, row: dict[str, int], lists: dict[bytes, int]) -> None:
    if word == "-1":
        row["dep_kind"] = DEP_NONE
    elif word.startswith("("):
        if not LIST.fullmatch(word):
            raise LineError(f"has '{word[:40]}' as dependency list; items look like 3-s0.")
        row["dep_kind"] = DEP_LIST
        row["dep_num"] = lists.setdefault(word.encode(), len(lists))
    else:
        row["dep_kind"] = DEP_ONE
        row["dep_key"], row["dep_num"], row["dep_node"] = _op_id(word)
