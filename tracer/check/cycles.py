"""Whether a trace can have happened: what depends on what must have a beginning."""

from __future__ import annotations

import numpy as np

from tracer.errors import TraceError
from tracer.format.line import list_items
from tracer.format.record import DEP_LIST, DEP_ONE, Ints, Trace
from tracer.grouping import group

SHIFT = 1 << 20  # beyond any operation_num or node of a file that can be held in memory


def check_acyclic(trace: Trace) -> None:
    """A TraceError that names a record on a cycle, if there is one.

    One-to-one dependencies give each record at most one predecessor, so following them twice as
    far each time leads out of the file unless there is a cycle. A one-to-many dependency is on
    operations that came before: its operation_num with the same node cannot be its own or later.
    """
    r = trace.records
    rows = np.flatnonzero(r.is_data)
    if not len(rows):
        return
    codes = _code(r.key[rows], r.op_num[rows], r.node[rows])
    order = np.argsort(codes, kind="stable")
    wanted = _code(r.dep_key[rows], r.dep_num[rows], r.dep_node[rows])
    place = np.minimum(np.searchsorted(codes[order], wanted), len(rows) - 1)
    there = (r.dep_kind[rows] == DEP_ONE) & (codes[order][place] == wanted)
    outside = len(rows)
    before = np.append(np.where(there, order[place], outside), outside)
    far = before
    for _ in range(max(1, len(rows).bit_length())):
        far = far[far]
    caught = np.flatnonzero(far != outside)
    if len(caught):
        raise _cycle(trace, int(rows[far[caught[0]]]))
    listed = rows[r.dep_kind[rows] == DEP_LIST]
    lists = group(r.dep_num[listed])
    for number, begin, end in zip(lists.keys[0], lists.begin, [*lists.begin[1:], len(listed)]):
        owners = listed[lists.order[begin:end]]
        for op_num, node in list_items(r.lists[number]):
            bad = owners[(r.node[owners] == node) & (r.op_num[owners] <= op_num)]
            if len(bad):
                raise _cycle(trace, int(bad[0]))


def _code(key: Ints, number: Ints, node: Ints) -> Ints:
    wide: Ints = (key.astype(np.int64) * SHIFT + number + 16) * SHIFT + node
    return wide


def _cycle(trace: Trace, row: int) -> TraceError:
    r = trace.records
    return TraceError(
        f"{trace.path or trace.header.node}: record {r.id[row]} (key {r.key[row]}, operation "
        f"{r.op_num[row]}) depends on itself, by way of others or at once: no replay can start"
    )
