"""MLCommons Chakra execution traces: one file a node, for simulators that replay them.

A message is a send node at its sender and a receive node at its receiver, with the same tag. What a
node did before it sent is a compute node of that duration: a worker's computation up to a push, a
server's update, which is one for all workers, and its search. Waiting and the way of packets are
none: a push is received with its last packet. Files are named by rank id: PREFIX.0.et, ...
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tracer.check.cycles import check_acyclic
from tracer.errors import TraceError
from tracer.format.line import list_items
from tracer.format.protobuf import bytes_field, int_field, text_field, varint
from tracer.format.record import (
    ASYNCHRONOUS,
    CODE,
    DEP_LIST,
    DEP_ONE,
    MERCURY,
    OPERATIONS,
    STAGES,
    WHOLE_MESSAGES,
    Ints,
    Trace,
    node_text,
)
from tracer.output import whole_directory, whole_file
from tracer.progress import Progress
from tracer.run import Run

PUSH, PUSHED, CONFIRMATION, SUM = (
    CODE[name]
    for name in ("Push_Send_Worker", "Push_Recv_Server", "Push_Send_Server", "Pull_Send_Server")
)
VERSION = "0.0.4"
COMPUTE, SEND, RECEIVE = 4, 5, 6  # Chakra's NodeType
# Fields of Chakra's Node and AttributeProto.
ID, NAME, TYPE, DATA_DEPS, START, DURATION, ATTRIBUTE = 1, 2, 3, 5, 6, 7, 10
INT32_VALUE, INT64_VALUE, BOOL_VALUE, STRING_VALUE = 7, 9, 27, 29


def write_chakra(run: Run, folder: str | Path, quiet: bool = True) -> list[Path]:
    if not run.traces:
        raise TraceError(f"{run.path}: holds scheduler traffic only; there is nothing to replay")
    for trace in run.traces:
        check_acyclic(trace)
    total = sum(len(trace.records) for trace in run.traces)
    place_of = {key: place for place, key in enumerate(run.keys())}
    done = 0
    paths = []
    with (
        whole_directory(folder) as target,
        Progress("writing Chakra traces", total, quiet) as progress,
    ):
        for trace in run.traces:
            paths.append(target / f"trace.{trace.header.rank_id}.et")
            with whole_file(paths[-1]) as file:
                meta = text_field(1, VERSION) + b"".join(
                    bytes_field(2, _attribute(name, STRING_VALUE, value))
                    for name, value in (("run", run.header.run), ("node", trace.header.node))
                )
                file.write(_delimited(meta))
                file.writelines(map(_delimited, _nodes(trace, place_of)))
            done += len(trace.records)
            progress.reached(done)
    return paths


def _delimited(message: bytes) -> bytes:
    return varint(len(message)) + message


def _attribute(name: str, kind: int, value: int | str) -> bytes:
    held = text_field(kind, value) if isinstance(value, str) else int_field(kind, value)
    return text_field(1, name) + held


def _node(
    number: int, name: str, kind: int, deps: list[int], start: int, duration: int,
    attributes: list[tuple[str, int, int]],
) -> bytes:  # fmt: skip
    packed_deps = b"".join(varint(dep) for dep in deps)
    return b"".join(
        [
            int_field(ID, number),
            text_field(NAME, name),
            int_field(TYPE, kind),
            bytes_field(DATA_DEPS, packed_deps) if deps else b"",
            int_field(START, start),
            int_field(DURATION, duration),
            *(bytes_field(ATTRIBUTE, _attribute(*attribute)) for attribute in attributes),
        ]
    )


class _Resolver:
    """Which records a record waited for, by place in the file; through those that are left out."""

    def __init__(self, trace: Trace, kept: Ints) -> None:
        self._r = trace.records
        self._kept = set(kept.tolist())
        self._any_key = trace.header.role == "worker"
        self._one: dict[tuple[int, int, int], int] = {}
        self._all: dict[tuple[int, int], list[int]] = {}
        rows = np.flatnonzero(self._r.is_data).tolist()
        keys, numbers, nodes = (self._r.column(name).tolist() for name in ("key", "op_num", "node"))
        for row in rows:
            self._one[keys[row], numbers[row], nodes[row]] = row
            if self._any_key:
                self._all.setdefault((numbers[row], nodes[row]), []).append(row)
        self._lists = [list_items(text) for text in self._r.lists]

    def confirmed(self, row: int) -> int:
        """On a server, the round trip's confirmation, or its push's last packet; else `row`."""
        r = self._r
        number = int(r.op_num[row]) - int(r.operation[row]) % STAGES + CONFIRMATION % STAGES
        return self._one.get((int(r.key[row]), number, int(r.node[row])), row)

    def waited_for(self, row: int) -> list[int]:
        """Earlier records only: what a list names may have come later."""
        r = self._r
        kind = int(r.dep_kind[row])
        found: list[int] = []
        if kind == DEP_ONE:
            place = (int(r.dep_key[row]), int(r.dep_num[row]), int(r.dep_node[row]))
            found = [self._one[place]] if place in self._one else []
        elif kind == DEP_LIST:
            for number, node in self._lists[int(r.dep_num[row])]:
                if self._any_key:
                    found += self._all.get((number, node), [])
                elif (int(r.key[row]), number, node) in self._one:
                    found.append(self._one[int(r.key[row]), number, node])
        out: list[int] = []
        for earlier in found:
            if r.time[earlier] > r.time[row] or earlier == row:
                continue
            out += [earlier] if earlier in self._kept else self.waited_for(earlier)
        return out


def _nodes(trace: Trace, place_of: dict[int, int]) -> Iterator[bytes]:
    """A send is two nodes, what was done before it and the message; a receipt is one.

    Tags tell keys apart by their places among the run's, which have no gaps.
    """
    r, header = trace.records, trace.header
    whole = np.isin(r.operation, WHOLE_MESSAGES[header.mode])
    kept = np.flatnonzero(r.is_data & whole)
    resolver = _Resolver(trace, kept)
    times = r.time.copy()
    updated = CONFIRMATION  # what a server sends after an update
    if header.mode == MERCURY:
        updated = SUM
        for row in kept[r.operation[kept] == PUSHED].tolist():
            times[row] = r.time[resolver.confirmed(row)]
    kept = kept[np.argsort(times[kept], kind="stable")]
    iteration = trace.iteration()
    number_of: dict[int, int] = {}
    # Of a worker's step and of a server's update: what it came to last, and when.
    done: dict[tuple[int, ...], tuple[list[int], int]] = {}
    count = 0
    for row in kept.tolist():
        operation, time = int(r.operation[row]), int(times[row])
        name = f"{OPERATIONS[operation]} {r.key[row]}-{r.op_num[row]}-{node_text(int(r.node[row]))}"
        sends = "_Send_" in OPERATIONS[operation]
        step = int(iteration[row])
        place: tuple[int, ...] = (step,)
        if header.role == "server":
            place = (step, int(r.key[row]))
            if header.training == ASYNCHRONOUS:  # an update for each worker
                place = (*place, int(r.node[row]))
        if operation in (PUSH, updated) and place in done:
            # Gradients become ready one after another, not all at once; an update is for all.
            deps, last = done[place]
            since = last if operation == PUSH else time
        else:
            waited = [earlier for earlier in resolver.waited_for(row) if earlier in number_of]
            deps = [number_of[earlier] for earlier in waited]
            since = max((int(times[earlier]) for earlier in waited), default=time)
            if operation == SUM and place in done:
                # It, or a first value, may be asked for ahead: nothing is searched for until then.
                deps, since = deps + done[place][0], max(since, int(times[resolver.confirmed(row)]))
        if sends and time > since:
            count += 1
            attributes = [("is_cpu_op", BOOL_VALUE, 1)]
            before = f"before {name}"
            yield _node(count, before, COMPUTE, deps, since, time - since, attributes)
            deps = [count]
        if operation in (PUSH, updated) and deps:
            done[place] = deps, time
        count += 1
        number_of[row] = count
        tag = ((step + 1) * STAGES + operation % STAGES) * len(place_of) + place_of[int(r.key[row])]
        attributes = [
            ("is_cpu_op", BOOL_VALUE, 0),
            ("comm_size", INT64_VALUE, int(r.length[row])),
            ("comm_src", INT32_VALUE, int(r.src[row])),
            ("comm_dst", INT32_VALUE, int(r.dst[row])),
            ("comm_tag", INT32_VALUE, tag),
        ]
        yield _node(count, name, SEND if sends else RECEIVE, deps, time, 0, attributes)
