"""The report's other pictures, each from a table that the analysis made."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracer import round_trip as rt
from tracer.analysis.message_parts import PARTS
from tracer.report.drawing import (
    BLUE,
    CYCLE,
    GREEN,
    GREY,
    ORANGE,
    RED,
    SKY,
    Axes,
    Canvas,
    shortened,
)
from tracer.round_trip import RoundTrips
from tracer.table import Table

BARS_MOST = 30  # keys in one picture; the table has them all
BINS = 200


def _bars(canvas: Canvas, names: list[str], values: Any, label: str, colour: str = BLUE) -> Axes:
    names, values = names[:BARS_MOST], np.asarray(values[:BARS_MOST], dtype=float)
    axes = canvas.axes(1.0 + 0.22 * max(len(names), 3))[0]
    axes.barh(range(len(names)), values, color=colour, height=0.7)
    axes.set_yticks(range(len(names)), names)
    axes.set(xlabel=label, xlim=(0, None), ylim=(max(len(names), 3) - 0.5, -0.5))
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")
    return axes


def _named(keys: Any, names: list[str]) -> list[str]:
    return [shortened(f"{key} {name}") for key, name in zip(np.asarray(keys).tolist(), names)]


def _legend(canvas: Canvas, axes: Axes, columns: int = 3) -> None:
    handles, labels = axes.get_legend_handles_labels()
    canvas.figure.legend(
        handles, labels, loc="outside upper left", ncols=2 if canvas.narrow else columns
    )


def sizes(canvas: Canvas, per_key: Table) -> None:
    operation = np.asarray(per_key["operation"])
    rows = np.flatnonzero(operation == "Push_Send_Worker")
    names = _named(per_key["key"][rows], [per_key["name"][i] for i in rows.tolist()])
    axes = _bars(canvas, names, per_key["mean_bytes"][rows], "bytes of a push (logarithmic)")
    axes.set(xscale="log", xlim=(1, None))


def _by_iteration(iteration: Any, values: Any) -> tuple[Any, Any]:
    """The iterations, and of each the mean over all workers."""
    x, place = np.unique(np.asarray(iteration), return_inverse=True)
    count = np.maximum(np.bincount(place, minlength=len(x)), 1)
    return x, np.bincount(place, np.asarray(values), minlength=len(x)) / count


def phases(canvas: Canvas, found: Table) -> None:
    """Mean of all workers, iteration by iteration."""
    axes = canvas.axes(2.8)[0]
    two, three = np.asarray(found["phase2_us"]), np.asarray(found["phase3_us"])
    means = [_by_iteration(found["iteration"], v) for v in (found["phase1_us"], two, three - two)]
    x, layers = means[0][0], [mean / 1000 for _, mean in means]
    axes.stackplot(
        x, *layers, colors=(GREY, SKY, RED), linewidth=0,
        labels=("1 computation", "2 both at once", "3 less 2: waiting for communication"),
    )  # fmt: skip
    first, last = (x[0], x[-1]) if len(x) else (0, 1)
    axes.set(xlabel="iteration", xlim=(first, max(last, first + 1)))
    axes.set(ylabel="ms", ylim=(0, None))
    _legend(canvas, axes)


def prophet(canvas: Canvas, found: Table) -> None:
    """Means of all workers: what training waited, and how many blocks there were."""
    waits, blocks = canvas.axes(3.6, 2)
    iteration = np.asarray(found["iteration"])
    for axes, name, what, colour, scale in (
        (waits, "wait_first_us", "until the most urgent sum was in", RED, 1e-3),
        (waits, "wait_later_us", "later", ORANGE, 1e-3),
        (blocks, "blocks", None, BLUE, 1.0),
    ):
        values = np.asarray(found[name])
        known = values >= 0
        x, mean = _by_iteration(iteration[known], values[known])
        axes.plot(x, mean * scale, color=colour, label=what)
    for axes, label in ((waits, "ms waited"), (blocks, "blocks")):
        axes.set(ylabel=label, ylim=(0, None))
        axes.grid(axis="y")
    blocks.set_xlabel("iteration")
    _legend(canvas, waits)


def _curves(canvas: Canvas, found: Table, scale: float = 1.0, least: float | None = None) -> Axes:
    """Distribution curves, one for each `what`."""
    axes = canvas.axes(3.2)[0]
    what = np.asarray(found["what"])
    for colour, name in zip(CYCLE, dict.fromkeys(what.tolist())):
        mine = what == name
        values = np.asarray(found["value"])[mine] * scale
        axes.plot(
            values if least is None else np.maximum(values, least),
            np.asarray(found["share"])[mine],
            color=colour, label=shortened(name), drawstyle="steps-post",
        )  # fmt: skip
    axes.set(ylim=(0, 1.02))
    axes.grid()
    return axes


def distributions(canvas: Canvas, found: Table) -> None:
    axes = _curves(canvas, found, least=1.0)
    axes.set(xscale="log", xlabel="microseconds (logarithmic)")
    axes.set(ylabel="share of all that take at most this")
    _legend(canvas, axes, 5)


def overlap(canvas: Canvas, found: Table) -> None:
    axes = _curves(canvas, found, scale=100.0)
    _legend(canvas, axes)
    axes.set(xlabel="overlap ratio, %", xlim=(0, None))
    axes.set(ylabel="share of all iterations with at most this")


def exposed(canvas: Canvas, layers: Table) -> None:
    names = _named(layers["key"], layers["name"])
    values = np.asarray(layers["mean_us"]) / 1000
    _bars(canvas, names, values, "ms that a step waits for this key, on average", RED)


def life(canvas: Canvas, per_key: Table) -> None:
    names = _named(per_key["key"], per_key["name"])[:BARS_MOST]
    axes = canvas.axes(1.2 + 0.22 * max(len(names), 3))[0]
    left = np.zeros(len(names))
    for colour, part in zip((GREY, BLUE, RED, GREEN, ORANGE), PARTS):
        width = np.asarray(per_key[f"{part}_us"][:BARS_MOST]) / 1000
        label = {"peers": "waiting for peers"}.get(part, part.replace("_", " "))
        axes.barh(range(len(names)), width, left=left, color=colour, height=0.7, label=label)
        left = left + width
    axes.set_yticks(range(len(names)), names)
    axes.set(ylim=(max(len(names), 3) - 0.5, -0.5), xlabel="ms from push to answer, on average")
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")
    _legend(canvas, axes, 5)


def steps(canvas: Canvas, starts: Table) -> None:
    """Each gradient as a point; whatever appears together lies on one level."""
    axes = canvas.axes(2.9)[0]
    index, start = np.asarray(starts["index"]), np.asarray(starts["start_us"]) / 1000
    named = _named(starts["key"], starts["name"])
    number = np.asarray(starts["step"])
    for step in np.unique(number).tolist():
        there = np.flatnonzero(number == step)
        colour = CYCLE[step % len(CYCLE)]
        label = f"step {step}: {_range(index[there])}" if step < len(CYCLE) else None
        axes.plot(index[there], start[there], "o", ms=4, color=colour, label=label)
    for place in _apart(index, start) if len(index) <= BARS_MOST else ():
        axes.annotate(
            named[place], (index[place], start[place]), xytext=(4, 4), fontsize=6,
            textcoords="offset points",
        )  # fmt: skip
    axes.set(xlabel="gradient, 0 being the most urgent")
    axes.set(ylabel="ms after the first push", ylim=(0, None))
    axes.margins(x=0.08)
    axes.grid()
    _legend(canvas, axes, 4)


def _range(index: Any) -> str:
    """The gradients of a step."""
    least, most = int(index.min()), int(index.max())
    return f"gradient {least}" if least == most else f"gradients {least} to {most}"


def _apart(index: Any, start: Any) -> list[int]:
    """Points whose names do not lie on one another: one of those that are near."""
    found: list[int] = []
    high = max(float(start.max(initial=0)), 1e-9)
    wide = max(float(index.max(initial=0)), 1.0)
    for place in np.argsort(start, kind="stable").tolist():
        near = any(
            abs(index[place] - index[other]) < 0.2 * wide
            and abs(start[place] - start[other]) < 0.08 * high
            for other in found
        )
        if not near:
            found.append(place)
    return found


def stragglers(canvas: Canvas, workers: Table) -> None:
    names = [f"worker {worker}" for worker in workers["worker"]]
    _bars(canvas, names, np.asarray(workers["share"]) * 100, "% of keys and iterations last", RED)


def balance(canvas: Canvas, servers: Table) -> None:
    names = [f"server {server}" for server in np.asarray(servers["server"]).tolist()]
    moved = np.asarray(servers["push_bytes"]) + np.asarray(servers["pull_bytes"])
    _bars(canvas, names, moved / 1e6, "MB in and out", GREEN)


def inversion(canvas: Canvas, keys: Table) -> None:
    names = _named(keys["key"], keys["name"])
    values = np.asarray(keys["mean_bytes"]) / 1000
    _bars(canvas, names, values, "KB of less urgent data before a message, on average", RED)


def critical(canvas: Canvas, kinds: Table) -> None:
    _bars(
        canvas,
        [shortened(what) for what in kinds["what"]],
        np.asarray(kinds["share"]) * 100,
        "% of the critical path",
    )


def spread(begin: Any, end: Any, size: Any, edges: Any) -> Any:
    """Bytes between each two edges, if every message moves evenly from its begin to its end."""
    end = np.maximum(end, begin + 1)
    rate = size / (end - begin)

    def risen(at: Any) -> Any:  # if no message ended
        order = np.argsort(at)
        rates = np.concatenate([[0.0], np.cumsum(rate[order])])
        before = np.concatenate([[0.0], np.cumsum(rate[order] * at[order])])
        begun = np.searchsorted(at[order], edges)
        return edges * rates[begun] - before[begun]

    return np.diff(risen(begin) - risen(end))


def throughput(canvas: Canvas, table: RoundTrips) -> None:
    """Bytes that arrived, in equal slices of the run."""
    # From when until when, told by those who received; if they are silent, by those who sent.
    if table.by_packets:
        to_servers = ((rt.S_PUSH_RECV, rt.S_PUSH_SEND), (rt.W_PUSH_SEND, rt.W_PUSH_RECV))
        to_workers = ((rt.W_PULL_SEND, rt.W_PULL_RECV), (rt.S_PULL_RECV, rt.S_PULL_SEND))
    else:
        to_servers = ((rt.W_PUSH_SEND, rt.S_PUSH_RECV), (rt.W_PUSH_SEND, rt.W_PUSH_SEND))
        to_workers = ((rt.S_PULL_SEND, rt.W_PULL_RECV), (rt.S_PULL_SEND, rt.S_PULL_SEND))
    names = (
        ("at servers", *to_servers, table.push_bytes, BLUE),
        ("at workers", *to_workers, table.pull_bytes, ORANGE),
    )
    axes = canvas.axes(2.6)[0]
    known = table.times[table.times != rt.MISSING]
    start, end = (int(known.min()), int(known.max()) + 1) if len(known) else (0, 1)
    width = max((end - start) / BINS, 1.0)
    edge = width * np.arange(BINS + 1)
    for label, seen, other, size, colour in names:
        there = np.where(table.has(*seen), 1, np.where(table.has(*other), 2, 0))
        begin, last = (
            np.where(there == 1, table.times[mine], table.times[theirs])[there > 0] - start
            for mine, theirs in zip(seen, other)
        )
        moved = spread(begin.astype(float), last.astype(float), size[there > 0], edge)
        axes.plot(edge[:-1] / 1e6, moved / width * 8 / 1000, color=colour, label=label)
    axes.set(xlabel="seconds since the first push")
    axes.set(ylabel="Gbit/s, sum of all nodes", ylim=(0, None))
    axes.grid(axis="y")
    _legend(canvas, axes)
