"""What a reader wants first: a few figures, and where the time goes.

All of it is of the same iterations, those of which it is known when they began, so that no two
figures contradict each other: an iteration is computation, then waiting.
"""

from __future__ import annotations

import numpy as np

from tracer.analysis.phases import phases
from tracer.format.record import Array
from tracer.grouping import group
from tracer.report import parts
from tracer.report.drawing import GREY, RED, SKY, Canvas
from tracer.round_trip import RoundTrips
from tracer.table import Table

TITLE = "Where does the time go?"
QUESTION = "How much of their training time did the workers compute, and how much did they wait?"
SAYS = "Shares of each worker's time"
PARTS = (
    ("computing", GREY, "computation before the first push"),
    ("both", SKY, "computation while gradients are sent"),
    ("waiting", RED, "waiting for communication"),
)
NARROWEST = 0.04  # a share that has room for its number
WORKERS_MOST = 24


def shares(table: RoundTrips) -> Table:
    """Of each worker, and of all together at the top; sums to 1 each."""
    found = phases(table)
    two, three = np.asarray(found["phase2_us"]), np.asarray(found["phase3_us"])
    parts = {"computing": np.asarray(found["phase1_us"]), "both": two, "waiting": three - two}
    workers = group(np.asarray(found["worker"]))
    whole = workers.total(np.asarray(found["whole_us"]))
    columns: dict[str, list[float]] = {}
    for name, values in parts.items():
        total = workers.total(values)
        of_all = float(total.sum()) / max(float(whole.sum()), 1.0)
        columns[name] = [of_all, *(total / np.maximum(whole, 1)).tolist()]
    ranks = workers.keys[0].tolist()
    names = ["all workers", *(f"worker {rank}" for rank in ranks)]
    return Table("Shares of the time", {"who": names, **columns})


def draw(canvas: Canvas, table: RoundTrips) -> None:
    found = shares(table)
    names = found["who"][: WORKERS_MOST + 1]
    axes = canvas.axes(1.1 + 0.3 * len(names))[0]
    left = np.zeros(len(names))
    for name, colour, label in PARTS:
        width = np.asarray(found[name][: len(names)]) * 100
        axes.barh(range(len(names)), width, left=left, color=colour, height=0.72, label=label)
        for place, (begin, share) in enumerate(zip(left.tolist(), width.tolist())):
            if share >= 100 * NARROWEST:
                axes.text(
                    begin + share / 2, place, f"{share:.0f} %", ha="center", va="center",
                    fontsize=8, color="#111111",
                )  # fmt: skip
        left = left + width
    axes.set_yticks(range(len(names)), names)
    axes.set(xlim=(0, 100), ylim=(len(names) - 0.5, -0.5), xlabel="% of the time")
    axes.tick_params(axis="y", length=0)
    handles, labels = axes.get_legend_handles_labels()
    columns = 1 if canvas.narrow else 3
    canvas.figure.legend(handles, labels, loc="outside upper left", ncols=columns)


def cards(table: RoundTrips) -> str:
    """Medians over these iterations of all workers."""
    found = phases(table)
    whole, two, three = (np.asarray(found[f"{n}_us"]) for n in ("whole", "phase2", "phase3"))
    per_iteration = group(table.iteration).total(table.push_bytes + table.pull_bytes)
    shown = [
        ("iteration", _ms(whole), "last sum to last sum"),
        ("computation", _ms(np.asarray(found["computation_us"])), "last sum to last push"),
        ("waiting", _ms(three - two), "last push to last sum"),
        ("communication", _ms(three), "first push to last sum"),
        ("overlap", _percent(np.asarray(found["overlap_ratio"])), "computed while sending"),
        ("data", _bytes(float(np.median(per_iteration))), "per iteration, all nodes"),
    ]
    iterations = len(np.unique(np.asarray(found["iteration"])))
    workers = len(np.unique(np.asarray(found["worker"])))
    note = f"Medians over {workers} workers; iterations whose beginning is known: {iterations}."
    return parts.cards(shown, note)


def _ms(values: Array) -> str:
    if not len(values):
        return "-"
    us = float(np.median(values))
    return f"{us / 1000:.3g} ms" if us < 1e6 else f"{us / 1e6:.3g} s"


def _percent(values: Array) -> str:
    return f"{100 * float(np.median(values)):.1f} %" if len(values) else "-"


def _bytes(count: float) -> str:
    for unit in ("bytes", "KB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} GB"
