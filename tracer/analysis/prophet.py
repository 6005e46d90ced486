"""What did Prophet send in blocks, how right were its predictions, and what did training wait?

From the notes that workers write under MERCURY_POLICY=prophet, one for each iteration (and each
lane: what several lanes say of an iteration is one row).
"""

from __future__ import annotations

import numpy as np

from tracer.format.record import Array, Ints
from tracer.grouping import group
from tracer.run import Run
from tracer.table import Section, Table

NAME, TITLE = "prophet", "Prophet"
QUESTION = "What was sent in blocks, how good were the predictions, and how long did training wait?"
NOTE = (
    "blocks, bytes, held_us and rate are of all links together; errors are the latest known, "
    "transfer_error_us on average lately. wait_first_us: from the most urgent gradient until its "
    "sum was in; wait_later_us: what the rest of the forward pass took beyond the shortest. -1: "
    "not known. An iteration ends when the next begins."
)
ADDED = ("blocks", "bytes", "held_us", "rate")  # over lanes
ERRORS = ("production_error_us", "transfer_error_us")
WAITS = ("wait_first_us", "wait_later_us")
UNKNOWN = -1  # of what a note leaves out
MOST = 1 << 40  # of a number that makes sense
Said = dict[str, int]


def iterations(run: Run) -> Table:
    """A row for each iteration of each worker."""
    rows = [
        (trace.header.rank, said)
        for trace in run.workers
        for note in trace.notes
        if (said := _read(note.words)) is not None
    ]
    worker = np.asarray([rank for rank, _ in rows], np.int64)
    iteration = np.asarray([said["iteration"] for _, said in rows], np.int64)
    groups = group(worker, iteration)
    columns: dict[str, Array] = {**groups.named("worker", "iteration")}
    values = {
        name: np.asarray([said.get(name, UNKNOWN) for _, said in rows], np.int64)
        for name in (*ADDED, *ERRORS, *WAITS)
    }
    columns.update((name, groups.total(values[name])) for name in ADDED)
    columns.update((name, groups.most(values[name])) for name in ERRORS)
    # The lane that waited longest knows what training waited for.
    longest = groups.row_of_most(values["wait_first_us"])
    columns.update((name, values[name][longest]) for name in WAITS)
    return Table("Iterations", columns, NOTE)


def _read(words: list[str]) -> Said | None:
    """`prophet 12 blocks 40 bytes 2500000 ...`; None: not such a note, or a broken one."""
    if len(words) < 2 or words[0] != "prophet" or len(words) % 2 != 0:
        return None
    try:
        said = {name: int(number) for name, number in zip(words[2::2], words[3::2])}
        said["iteration"] = int(words[1])
    except ValueError:
        return None
    makes_sense = min(said.values()) >= 0 and max(said.values()) < MOST
    return said if said.keys() >= set(ADDED) and makes_sense else None


def per_worker(found: Table) -> Table:
    """Means over all iterations, medians of errors, each where it is known."""
    worker = np.asarray(found["worker"])
    rows = []
    for rank in np.unique(worker).tolist():
        mine = worker == rank
        of = {name: np.asarray(values)[mine] for name, values in found.columns.items()}
        blocks = of["blocks"]
        rows.append(
            {
                "worker": rank,
                "iterations": int(mine.sum()),
                "with_blocks": int((blocks > 0).sum()),
                "blocks": _mean(blocks),
                "block_bytes": float(of["bytes"].sum() / max(int(blocks.sum()), 1)),
                "held_us": _mean(of["held_us"]),
                **{name: _median(_known(of[name])) for name in ERRORS},
                **{name: _mean(_known(of[name])) for name in WAITS},
            }
        )
    return Table.of_rows("An iteration's mean, per worker; errors are medians", rows)


def _known(values: Ints) -> Ints:
    known: Ints = values[values != UNKNOWN]
    return known


def _mean(values: Ints) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _median(values: Ints) -> float:
    return float(np.median(values)) if len(values) else float("nan")


def section(run: Run) -> Section | None:
    """None: no worker was under this policy, or their traces do not say so."""
    found = iterations(run)
    if not len(found):
        return None
    return Section(NAME, TITLE, QUESTION, [per_worker(found), found], {"iterations": found})
