"""When in an iteration does each gradient begin to be sent?

Gradients do not appear one by one but in steps: several at nearly the same moment, then none for a
while. Policies that plan, such as Prophet, live on it. An iteration begins with a worker's first
push; a gradient's index is its place in the order of urgency, 0 being needed first.
"""

from __future__ import annotations

import numpy as np

from tracer.format.record import Ints
from tracer.grouping import Groups, group
from tracer.round_trip import W_PUSH_SEND, RoundTrips
from tracer.table import Section, Table

NAME, TITLE = "steps", "Step pattern"
QUESTION = "When in an iteration does each gradient begin to be sent?"
NOTE = "Medians over workers and iterations, after the first push of each worker's iteration."
STEP_SHARE = 0.03  # of the time of all pushes: a longer pause begins a new step


def starts(table: RoundTrips) -> Table:
    """Of each key, the median start and the middle half's spread; the most urgent first."""
    rows = table.take(table.has(W_PUSH_SEND))
    sent = rows.times[W_PUSH_SEND]
    iterations = group(rows.worker, rows.iteration)
    after = sent - iterations.least(sent)[iterations.index]
    # A key that is striped over servers is pushed to each; the first push counts.
    pushes = group(rows.key, rows.worker, rows.iteration)
    first = pushes.least(after)
    keys = group(pushes.keys[0])
    quartiles = [_quantile(keys, first, share) for share in (1, 2, 3)]
    number = keys.keys[0]
    priority = np.asarray([table.keys[int(key)].priority for key in number], np.int64)
    order = np.lexsort((number, -priority))
    median = quartiles[1][order]
    return Table(
        "Start of each gradient's transfer, most urgent first",
        {
            "index": np.arange(len(order)),
            "key": number[order],
            "name": table.names(number[order]),
            "start_us": median,
            "spread_us": (quartiles[2] - quartiles[0])[order],
            "step": _steps(median),
        },
        NOTE,
    )


def _quantile(keys: Groups, values: Ints, quarter: int) -> Ints:
    """Of each group, the value at that quarter of its sorted rows."""
    place = keys.begin + (keys.count() - 1) * quarter // 4
    picked: Ints = values[keys.sorted_rows(values)[place]]
    return picked


def _steps(start: Ints) -> Ints:
    """The number of each gradient's step: a pause that is long beside the whole begins one."""
    order = np.argsort(start, kind="stable")
    pause = np.diff(start[order], prepend=start[order[:1]])
    span = int(start.max()) if len(start) else 0
    number = np.empty(len(start), np.int64)
    number[order] = np.cumsum(pause > max(STEP_SHARE * span, 1))
    return number


def pattern(found: Table) -> Table:
    """The steps, as they come."""
    steps = group(np.asarray(found["step"]))
    start = steps.least(np.asarray(found["start_us"]))
    return Table(
        "Steps",
        {
            "step": steps.keys[0],
            "start_us": start,
            "pause_us": np.diff(start, prepend=start[:1]),
            "gradients": steps.count(),
            "first_index": steps.least(np.asarray(found["index"])),
            "last_index": steps.most(np.asarray(found["index"])),
        },
        f"A pause of more than {STEP_SHARE:.0%} of the time of all pushes begins a step.",
    )


def section(table: RoundTrips) -> Section:
    found = starts(table)
    return Section(NAME, TITLE, QUESTION, [pattern(found), found], {"starts": found})
