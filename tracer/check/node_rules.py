"""What must hold within one worker's or server's file."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tracer.check.cycles import check_acyclic
from tracer.check.dependencies import dependency_findings
from tracer.check.finding import ERROR, WARNING, Finding, report
from tracer.errors import TraceError
from tracer.format import record as rec
from tracer.format.record import Bools, Ints, Trace

# (earlier stage, later stage): the order of one key's records with one node in one iteration.
# (A request may go ahead of the confirmation; if it waited for it, its dependency says so.)
ORDER = ((0, 1), (0, 2), (2, 3), (1, 3))


def node_findings(trace: Trace) -> Iterator[Finding]:
    yield from _file_findings(trace)
    data = trace.records.is_data
    if not data.any():
        if trace.leader is None:  # whose host may send nothing together
            yield Finding(WARNING, "empty", trace.path, "holds no push and no pull")
        return
    yield from _column_findings(trace, data)
    yield from _order_findings(trace, data)
    yield from _packet_findings(trace)
    yield from dependency_findings(trace)
    try:
        check_acyclic(trace)
    except TraceError as error:
        text = str(error).removeprefix(f"{trace.path}: ")
        yield Finding(ERROR, "dependency", trace.path, text)


def _file_findings(trace: Trace) -> Iterator[Finding]:
    if trace.lost:
        text = f"{trace.lost} records were lost while capturing: its buffer was too small"
        yield Finding(WARNING, "lost", trace.path, text, trace.lost)
    if not trace.complete:
        text = "has no end note: its process was killed, or another tool wrote it"
        yield Finding(WARNING, "no-end", trace.path, text)
    if trace.failed:
        text = "its job failed: what was under way then has no end"
        yield Finding(WARNING, "failed", trace.path, text)


def _column_findings(trace: Trace, data: Bools) -> Iterator[Finding]:
    header, r = trace.header, trace.records
    on_server = header.role == "server"
    code = r.operation.astype(np.int64)
    yield from report(
        trace,
        "role",
        data & ((code >= rec.STAGES) != on_server),
        f"is an operation of the other role; this is a {header.role}'s file",
    )
    stage = (r.op_num.astype(np.int64) - header.first_op) % rec.STAGES
    yield from report(
        trace,
        "op_num",
        data & (stage != code % rec.STAGES),
        "has an operation_num that belongs to another operation",
    )
    peers = header.workers if on_server else header.servers
    rank, role = r.node // len(rec.ROLES), r.node % len(rec.ROLES)
    wrong_peer = data & ((role != (rec.WORKER if on_server else rec.SERVER)) | (rank >= peers))
    yield from report(trace, "peer", wrong_peer, "names a node that the run does not have")
    there = rank + (0 if on_server else header.workers)
    sends = np.isin(code % 8, [c for c, name in enumerate(rec.OPERATIONS[:8]) if "_Send_" in name])
    src = np.where(sends, header.rank_id, there)
    dst = np.where(sends, there, header.rank_id)
    yield from report(
        trace,
        "ends",
        data & ~wrong_peer & ((r.src != src) | (r.dst != dst)),
        "has src or dst that do not fit its operation and node",
    )
    yield from report(trace, "length", data & (r.length < 0), "has a negative length")
    initial = data & (r.op_num < header.first_op) & (code % rec.STAGES < 2)
    yield from report(
        trace,
        "num_pp",
        (initial & (r.num_pp != rec.INITIAL_NUM_PP)) | (data & ~initial & (r.num_pp <= 0)),
        f"has a wrong num_pp: {rec.INITIAL_NUM_PP} is for initial values, others count from 1",
    )


def _order_findings(trace: Trace, data: Bools) -> Iterator[Finding]:
    """Order in time, numbers said twice, and num_pp, for each key, node and iteration."""
    rows = np.flatnonzero(data)
    codes = _iteration_codes(trace, rows)
    order = np.argsort(codes, kind="stable")
    rows, codes = rows[order], codes[order]
    twice = np.zeros(len(data), np.bool_)
    twice[rows[1:][codes[1:] == codes[:-1]]] = True
    yield from report(trace, "twice", twice, "has an op_id that another record has")
    group, stage = codes // rec.STAGES, codes % rec.STAGES
    unique, place = np.unique(group, return_inverse=True)
    table = np.full((rec.STAGES, len(unique)), -1, np.int64)
    table[stage, place] = rows
    time, num_pp = trace.records.time, trace.records.num_pp

    def pairs(earlier: int, later: int) -> tuple[Ints, Ints]:
        both = (table[earlier] >= 0) & (table[later] >= 0)
        return table[earlier][both], table[later][both]

    def these(rows: Ints) -> Bools:
        bad = np.zeros(len(data), np.bool_)
        bad[rows] = True
        return bad

    for earlier, later in ORDER:
        one, two = pairs(earlier, later)
        name = rec.OPERATIONS[earlier + (rec.STAGES if trace.header.role == "server" else 0)]
        bad = these(two[time[two] < time[one]])
        yield from report(trace, "order", bad, f"is earlier than its {name}")
    for earlier, later in ((0, 1), (2, 3)):
        one, two = pairs(earlier, later)
        text = "has another num_pp than the other record of its operation"
        yield from report(trace, "num_pp", these(two[num_pp[two] != num_pp[one]]), text)
    # Who pushes and pulls by two calls may dispatch others between them.
    one, two = pairs(0, 2)
    off = (num_pp[two] <= num_pp[one]) & (num_pp[one] != rec.INITIAL_NUM_PP)
    yield from report(trace, "num_pp", these(two[off]), "has a num_pp that is not above its push's")


def _packet_findings(trace: Trace) -> Iterator[Finding]:
    """First packets: of pushes in packets, one each. On whom they depend is checked elsewhere."""
    r = trace.records
    rows = np.flatnonzero(r.operation == rec.FIRST_PACKET)
    if not len(rows):
        return
    bad = np.zeros(len(r), np.bool_)
    if trace.header.role != "worker" or trace.header.mode != rec.MERCURY:
        bad[rows] = True
        text = "is of a worker in mercury mode alone"
        yield from report(trace, "role", bad, text)
        return
    rows = rows[np.lexsort((r.op_num[rows], r.node[rows], r.key[rows]))]
    places = np.stack((r.key[rows], r.node[rows], r.op_num[rows]))
    bad[rows[1:][(places[:, 1:] == places[:, :-1]).all(axis=0)]] = True
    yield from report(trace, "twice", bad, "has an op_id that another first packet has")


def _iteration_codes(trace: Trace, rows: Ints) -> Ints:
    """One number for key, node, iteration and stage of each row, ascending with all four."""
    r = trace.records
    number = r.op_num[rows].astype(np.int64) - trace.header.first_op + rec.STAGES
    nodes = int(r.node.max()) + 1
    span = int(number.max(initial=0)) // rec.STAGES + 2
    code: Ints = (r.key[rows].astype(np.int64) * nodes + r.node[rows]) * span * rec.STAGES + number
    return code
