"""Whether each record depends on what the rules say, on records that exist, for as long as it says.

A file that starts late (a window of steps) or lost records may name records that it does not hold;
those before its first record of a key and node are not missed. Of two records of the same
microsecond, which was first is not known: where a list holds one that is as old as its owner, no
d_time is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tracer.check.finding import ERROR, WARNING, Finding, report
from tracer.format import record as rec
from tracer.format.line import list_items
from tracer.format.record import Array, Bools, Ints, Trace

NUMBER_OFFSET = 1 << 8  # makes the operation_num of initial values positive
NOT_THERE = np.iinfo(np.int64).min
ROUNDING_US = 1  # a tool that cuts two times to microseconds may be one off


@dataclass
class _Index:
    """Finds records by a number made of their op_id."""

    codes: Ints
    times: Ints

    @staticmethod
    def of(codes: Ints, times: Ints) -> _Index:
        """The latest of those that share a code."""
        order = np.lexsort((times, codes))
        codes, times = codes[order], times[order]
        last = np.append(codes[1:] != codes[:-1], True)
        return _Index(codes[last], times[last])

    def find(self, codes: Ints) -> Ints:
        """The times; NOT_THERE where there is no such record."""
        if not len(self.codes):
            return np.full(len(codes), NOT_THERE, np.int64)
        place = np.minimum(np.searchsorted(self.codes, codes), len(self.codes) - 1)
        return np.where(self.codes[place] == codes, self.times[place], NOT_THERE)


def dependency_findings(trace: Trace) -> Iterator[Finding]:
    r = trace.records
    rows = np.flatnonzero(r.is_data)
    yield from _types(trace, rows)
    since = np.full(len(r), NOT_THERE, np.int64)
    unresolved = np.zeros(len(r), np.bool_)
    _one_to_one(trace, rows, since, unresolved)
    yield from _one_to_many(trace, rows, since, unresolved)
    severity = WARNING if trace.lost or trace.problems else ERROR
    missing = WARNING if trace.failed or trace.went_on else severity
    yield from report(
        trace, "dependency", unresolved, "depends on a record that is not there", missing
    )
    known = since != NOT_THERE
    later = known & (since > r.time) & (r.dep_kind == rec.DEP_ONE)
    yield from report(trace, "dependency", later, "is earlier than what it depends on", ERROR)
    off = known & ~later & (np.abs(r.time - since - r.d_time) > ROUNDING_US)
    yield from report(trace, "d_time", off, "has a d_time that its times do not give", severity)


def _types(trace: Trace, rows: Ints) -> Iterator[Finding]:
    r = trace.records
    expected = np.asarray(rec.DEP_TYPES_OF_STAGE)[r.operation % rec.STAGES]
    initial = r.op_num < trace.header.first_op
    independent = (r.dep_type == rec.INDEPENDENT) & (r.dep_kind == 0)
    # A push that follows no pull, a pull without a push and pulls of initial values have nothing to
    # depend on.
    stage = r.operation % rec.STAGES
    may = independent & (initial | (stage == 0) | _pulls_alone(trace, rows, stage))
    bad = np.zeros(len(r), np.bool_)
    bad[rows] = ((r.dep_type != expected) & ~may)[rows]
    yield from report(
        trace, "dep_type", bad, "has a dep_type that its operation cannot have", ERROR
    )


def _pulls_alone(trace: Trace, rows: Ints, stage: Array) -> Bools:
    """Requests in whose set of four there is no push."""
    r = trace.records
    alone = np.zeros(len(r), np.bool_)
    requests, pushes = rows[stage[rows] == 2], rows[stage[rows] == 0]
    nodes = int(r.node[rows].max()) + 1
    pushed = _code(r.key[pushes], r.op_num[pushes], r.node[pushes], nodes)
    wanted = _code(r.key[requests], r.op_num[requests] - 2, r.node[requests], nodes)
    alone[requests] = ~np.isin(wanted, pushed)
    return alone


def _captured(trace: Trace, rows: Ints, numbers: Ints) -> Bools:
    """Not captured: numbers below all that the file holds, and those of steps left out."""
    step = (numbers - trace.header.first_op) // rec.STAGES
    there: Bools = (numbers >= trace.records.op_num[rows].min()) & trace.covers(step)
    return there


def _code(key: Ints, number: Ints, node: Ints, nodes: int) -> Ints:
    wide = key.astype(np.int64) << 32
    code: Ints = (wide + number + NUMBER_OFFSET) * nodes + node
    return code


def _one_to_one(trace: Trace, rows: Ints, since: Ints, unresolved: Bools) -> None:
    r = trace.records
    nodes = int(max(r.node.max(), r.dep_node.max())) + 1
    index = _Index.of(_code(r.key[rows], r.op_num[rows], r.node[rows], nodes), r.time[rows])
    # A first packet is no link of the chain, but it depends on its push as others do.
    rows = np.append(rows, np.flatnonzero(r.operation == rec.FIRST_PACKET))
    single = rows[r.dep_kind[rows] == rec.DEP_ONE]
    since[single] = index.find(
        _code(r.dep_key[single], r.dep_num[single], r.dep_node[single], nodes)
    )
    numbers = r.dep_num[single].astype(np.int64)
    unresolved[single] = (since[single] == NOT_THERE) & _captured(trace, rows, numbers)


def _one_to_many(trace: Trace, rows: Ints, since: Ints, unresolved: Bools) -> Iterator[Finding]:
    """On a worker an item stands for all keys, on a server for the record's own key."""
    r = trace.records
    many = rows[r.dep_kind[rows] == rec.DEP_LIST]
    if not len(many):
        return
    parsed = [list_items(text) for text in r.lists]
    sizes = np.asarray([len(items) for items in parsed])
    first = np.concatenate(([0], np.cumsum(sizes)))
    flat = np.asarray([item for items in parsed for item in items], np.int64).reshape(-1, 2)
    listing = r.dep_num[many]
    count = sizes[listing]
    begin = np.concatenate(([0], np.cumsum(count)[:-1]))
    item = np.repeat(first[listing] - begin, count) + np.arange(int(count.sum()))
    owner = np.repeat(many, count)
    nodes = int(max(r.node.max(), flat[:, 1].max())) + 1
    any_key = trace.header.role == "worker"
    key = np.zeros(len(r), np.int64) if any_key else r.key.astype(np.int64)
    index = _Index.of(_code(key[rows], r.op_num[rows], r.node[rows], nodes), r.time[rows])
    number, node = flat[item, 0], flat[item, 1]
    found = index.find(_code(key[owner], number, node, nodes))
    missing = (found == NOT_THERE) & _captured(trace, rows, number)
    # At the end of a file the others' answers may not be there any more.
    open_end = (r.operation[owner] % rec.STAGES == 0) & (node != r.node[owner]) & (not any_key)
    np.logical_or.at(unresolved, owner[missing & ~open_end], True)
    past = np.where(found <= r.time[owner], found, NOT_THERE)
    latest = np.maximum.reduceat(past, begin)
    # Where some key's record came later, which of them was there already is not known either.
    unsure = found >= r.time[owner] if any_key else found == r.time[owner]
    since[many] = np.where(np.logical_or.reduceat(unsure, begin), NOT_THERE, latest)
    repeated = np.asarray([len(set(items)) < len(items) for items in parsed])[listing]
    bad = np.zeros(len(r), np.bool_)
    bad[many] = repeated
    yield from report(trace, "dependency", bad, "names a record twice in its list", ERROR)
