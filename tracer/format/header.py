"""The header of a text trace, written and read by the same page.

Ours has fixed words. Files of other tools word it differently, so reading goes by the letters of
a line's name alone, and what the header does not say is taken from the file's name.
"""

from __future__ import annotations

import re
from pathlib import PurePath

from tracer.format.record import (
    ASYNCHRONOUS,
    COLUMN_LINE,
    MERCURY,
    NODES_MOST,
    ROLES,
    SYNCHRONOUS,
    ZMQ,
    Header,
    whole_number,
)

RULE = "=" * 64
TITLE = "SketchDLC trace"

MEANING_COMMON = (
    "num_pp: push or pull in dispatch order, a pull one after its push; 0 set-up,"
    " -15 initial values",
    "op_id: key-operation_num-node; worker 0 trains from 4, other workers from 2,"
    " servers from 2; four to an iteration",
)
MEANING = {
    ZMQ: (
        *MEANING_COMMON,
        "dependencies on a worker: Push_Send <- Push_Recv <- Pull_Send <- Pull_Recv <-"
        " (all keys) next Push_Send",
        "dependencies on a server: Push_Recv <- (all workers) Push_Send <- Pull_Recv <-"
        " Pull_Send <- (all workers) next Push_Recv",
    ),
    MERCURY: (
        *MEANING_COMMON,
        "on a worker: Push_Send handed over, First_Packet first packet sent,"
        " Push_Recv last packet sent, Pull_Send first sum received, Pull_Recv last sum received",
        "on a server: Push_Recv first packet received, Push_Send last packet received,"
        " Pull_Recv first sum sent, Pull_Send last sum sent",
        "dependencies on a worker: Push_Send <- First_Packet; Push_Send <- Push_Recv;"
        " Push_Send <- Pull_Send <- Pull_Recv <- (all keys) next Push_Send",
        "dependencies on a server: Push_Recv <- Push_Send; Push_Recv <- (all workers) Pull_Recv <-"
        " Pull_Send <- (all workers) next Push_Recv",
    ),
}

_SPELLINGS = {  # the letters of a line's name
    "version": "sketchdlctrace",
    "run": "run runid",
    "mode": "mode",
    "training": "training",
    "workers": "workers numberofworkers numberofworker numworkers numworker workernum",
    "servers": "servers numberofservers numberofserver numservers numserver servernum",
    "host": "host hostname thishost",
    "role": "role hostrole",
    "rank": "rank myrank",
}
_BY_LETTERS = {
    spelling: name for name, spellings in _SPELLINGS.items() for spelling in spellings.split()
}
_DERIVED = {"workerids", "workerid", "serverids", "serverid", "schedulerid"}
_NAMED = re.compile(r"\s*([A-Za-z][A-Za-z _-]*?)\s*[:=]+\s*(.*?)\s*")
_FILE_NAME = re.compile(r"trace_(sch_)?(worker|server|scheduler)_(\d+)$")


def header_lines(header: Header) -> list[str]:
    workers, servers = header.workers, header.servers
    lines = [
        RULE,
        f"{TITLE}: version {header.version}",
        f"run: {header.run}",
        f"mode: {header.mode}",
        f"training: {header.training}",
        f"number of workers: {workers}",
        f"number of servers: {servers}",
        f"host: {header.host}",
        f"role: {header.role}",
        f"rank: {header.rank}",
        "worker ids: " + " ".join(str(i) for i in range(workers)),
        "server ids: " + " ".join(str(i) for i in range(workers, workers + servers)),
        f"scheduler id: {workers + servers}",
        *MEANING[header.mode],
        *header.extra,
        RULE,
        COLUMN_LINE,
    ]
    return [line.rstrip() for line in lines]


def from_file_name(path: str) -> tuple[str, int] | None:
    """Role and rank as the name of a trace file gives them."""
    found = _FILE_NAME.search(PurePath(path).stem)
    rank = whole_number(found.group(3)) if found else None
    return (found.group(2), rank) if found and rank is not None else None


def parse_header(lines: list[str], path: str) -> tuple[Header, set[str]]:
    """The header, and the names of the fields that its lines gave."""
    values: dict[str, str] = {}
    extra: list[str] = []
    meaning = {line for texts in MEANING.values() for line in texts}
    for line in lines:
        text = line.strip()
        if not text or set(text) <= {"=", "-"} or text in meaning or is_column_line(text):
            continue
        named = _NAMED.fullmatch(text)
        letters = re.sub("[^a-z]", "", named.group(1).lower()) if named else ""
        if named and letters in _BY_LETTERS:
            values[_BY_LETTERS[letters]] = named.group(2)
        elif letters not in _DERIVED:
            extra.append(text)
    given = set(values)
    numbers = {}
    for name in ("workers", "servers", "rank", "version"):
        digits = re.search(r"\d+", values.get(name, ""))
        if digits and len(digits.group()) < 10 and int(digits.group()) <= NODES_MOST:
            numbers[name] = int(digits.group())
        else:
            given.discard(name)
    role = values.get("role", "").strip().lower()
    by_name = from_file_name(path)
    if role not in ROLES:
        given.discard("role")
        role = by_name[0] if by_name else "worker"
    rank = numbers.get("rank", by_name[1] if by_name else 0)
    if by_name:
        given |= {"role", "rank"}
    asynchronous = values.get("training", "").lower().startswith("async")
    header = Header(
        role=role,
        rank=rank,
        workers=numbers.get("workers", 1),
        servers=numbers.get("servers", 1),
        host=values.get("host", ""),
        run=values.get("run", ""),
        mode=MERCURY if values.get("mode", "").lower() == MERCURY else ZMQ,
        training=ASYNCHRONOUS if asynchronous else SYNCHRONOUS,
        version=numbers.get("version", 1),
        extra=tuple(extra),
    )
    return header, given


def is_column_line(text: str) -> bool:
    words = text.split()
    return words[:3] == ["id", "src", "dst"]
