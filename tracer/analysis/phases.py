"""How long are the three phases of an iteration, and how much of it overlaps?

Per worker: (1) last Pull_Recv of the previous iteration to first Push_Send, (2) first to last
Push_Send, (3) first Push_Send to last Pull_Recv. Computation is 1 + 2, communication is 3, the
whole is 1 + 3, the overlap ratio is 2 / whole. The first iteration follows the initial values'
Pull_Recv. An iteration whose predecessor was not captured has no phase 1 and is left out.
"""

from __future__ import annotations

import numpy as np

from tracer.analysis.summary import curves, distributions, summaries
from tracer.format.record import Array, Ints
from tracer.grouping import group
from tracer.round_trip import MISSING, W_PULL_RECV, W_PUSH_SEND, RoundTrips
from tracer.table import Section, Table

NAME, TITLE = "phases", "The three phases"
QUESTION = "How long are the three phases of an iteration, and how much of it overlaps?"
NOTE = (
    "1: last Pull_Recv to first Push_Send; 2: first to last Push_Send; 3: first Push_Send to last "
    "Pull_Recv. Computation 1 + 2, communication 3, whole 1 + 3, overlap ratio 2 / whole."
)


def edges(table: RoundTrips) -> dict[str, Ints]:
    """Per worker and iteration: first and last push, first and last answer.

    And the last answer `before`: of the iteration before, or of initialisation; MISSING if none was
    captured, or if values were still initialised while training went on. Iterations are left out of
    which a push or an answer is missing: the first or the last may be the one that is not there.
    """
    both = table.has(W_PUSH_SEND, W_PULL_RECV)
    # Some keys are only pushed, or only pulled.
    rows = table.take(np.isin(table.key, table.key[both]))
    groups = group(rows.worker, rows.iteration)
    lacks = groups.total(~rows.has(W_PUSH_SEND, W_PULL_RECV)) > 0
    rows = rows.take(~lacks[groups.index])
    groups = group(rows.worker, rows.iteration)
    push, answer = rows.times[W_PUSH_SEND], rows.times[W_PULL_RECV]
    worker, iteration = groups.keys
    last = groups.most(answer)
    first_push = groups.least(push)
    initialised = table.initialised[worker]
    before = np.where((iteration == 0) & (initialised <= first_push), initialised, MISSING)
    next_one = (worker[1:] == worker[:-1]) & (iteration[1:] == iteration[:-1] + 1)
    before[1:][next_one] = last[:-1][next_one]
    return {
        **groups.named("worker", "iteration"),
        "first_push": first_push,
        "last_push": groups.most(push),
        "first_answer": groups.least(answer),
        "last_answer": last,
        "before": before,
    }


def follows(edge: dict[str, Ints]) -> Ints:
    """Places of the iterations of which it is known when they began."""
    return np.flatnonzero(edge["before"] != MISSING)


def phases(table: RoundTrips) -> Table:
    edge = edges(table)
    now = follows(edge)
    one = edge["first_push"][now] - edge["before"][now]
    two = edge["last_push"][now] - edge["first_push"][now]
    three = edge["last_answer"][now] - edge["first_push"][now]
    whole = one + three
    return Table(
        "Phases of each iteration",
        {
            "worker": edge["worker"][now],
            "iteration": edge["iteration"][now],
            "phase1_us": one,
            "phase2_us": two,
            "phase3_us": three,
            "computation_us": one + two,
            "communication_us": three,
            "whole_us": whole,
            "overlap_ratio": two / np.maximum(whole, 1),
        },
        NOTE,
    )


def overview(found: Table) -> Table:
    named = [
        (what, found[f"{what}_us"])
        for what in ("phase1", "phase2", "phase3", "computation", "communication", "whole")
    ]
    return summaries("Phases, all workers and iterations", named)


def per_worker(found: Table) -> Table:
    groups = group(found["worker"])
    columns = {
        name: groups.total(found[name]) / groups.count()
        for name in ("computation_us", "communication_us", "whole_us")
    }
    overlap = groups.total(found["phase2_us"]) / np.maximum(groups.total(found["whole_us"]), 1)
    columns["overlap_ratio"] = overlap
    return Table("Means per worker", {**groups.named("worker"), **columns})


def overlap(found: Table) -> list[tuple[str, Array]]:
    """The overlap ratios of all iterations, and of each worker's."""
    ratio, worker = found["overlap_ratio"], found["worker"]
    of_each = [(f"worker {w}", ratio[worker == w]) for w in np.unique(worker).tolist()]
    return [("all workers", ratio), *of_each]


def section(table: RoundTrips) -> Section:
    found = phases(table)
    ratios = overlap(found)
    shares = distributions("Distribution of the overlap ratio", ratios, unit="")
    tables = [overview(found), per_worker(found), shares, found]
    figures = {"iterations": found, "overlap": curves("Overlap ratio", ratios[:1])}
    return Section(NAME, TITLE, QUESTION, tables, figures)
