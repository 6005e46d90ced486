"""Long traces in no time: the last whole iteration of a short one, again and again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tracer.format.line import list_items, list_text
from tracer.format.record import COLUMNS, DEP_LIST, DEP_ONE, STAGES, Note, Records, Trace


def lengthened(trace: Trace, records_least: int) -> Trace:
    """The trace with so many further iterations that it has at least so many records."""
    r = trace.records
    iteration = trace.iteration()
    last = int(iteration.max())
    block = r.take(np.flatnonzero(iteration == last))
    before = np.flatnonzero(iteration == last - 1)
    period = int(r.time[iteration == last].min() - r.time[before].min())
    times = -(-max(records_least - len(r), 0) // len(block))
    turn = np.repeat(np.arange(1, times + 1), len(block))
    tiled = Records(
        **{name: np.tile(block.column(name), times) for name, _ in COLUMNS}, lists=list(r.lists)
    )
    tiled.id = int(r.id.max()) + 1 + np.arange(len(turn))
    tiled.time = tiled.time + turn * period
    tiled.op_num = (tiled.op_num + turn * STAGES).astype(np.int32)
    # Numbers of dispatch go up by two a key.
    tiled.num_pp = tiled.num_pp + turn * 2 * len(np.unique(block.key))
    single = tiled.dep_kind == DEP_ONE
    tiled.dep_num[single] += (turn[single] * STAGES).astype(np.int32)
    _new_lists(tiled, block, times)
    columns = {
        name: np.concatenate([r.column(name), tiled.column(name)]).astype(dtype)
        for name, dtype in COLUMNS
    }
    whole = Records(**columns, lists=tiled.lists)
    notes = [note for note in trace.notes if not note.text.startswith("end ")]
    notes.append(Note(len(whole), f"end {len(whole)} records"))
    return replace(trace, records=whole, notes=notes)


def _new_lists(tiled: Records, block: Records, times: int) -> None:
    """Each turn has lists of its own, with numbers that went on."""
    listed = np.flatnonzero(block.dep_kind == DEP_LIST)
    used = sorted(set(block.dep_num[listed].tolist()))
    items = [list_items(block.lists[place]) for place in used]
    base = len(tiled.lists)
    for turn in range(1, times + 1):
        for one in items:
            later = ((number + turn * STAGES, node) for number, node in one)
            tiled.lists.append(list_text(later))
    where = np.searchsorted(used, block.dep_num[listed])
    numbers = base + np.arange(times)[:, None] * len(used) + where[None, :]
    rows = np.arange(times)[:, None] * len(block) + listed[None, :]
    tiled.dep_num[rows.ravel()] = numbers.ravel().astype(np.int32)
