"""The page of a job under MLfabric: who sent what to whom, how late updates were, what was lost."""

from __future__ import annotations

import html
from collections import defaultdict
from pathlib import Path

import numpy as np

from tracer.fabric import History, quantile
from tracer.format.record import Array
from tracer.report import parts
from tracer.report.drawing import BLUE, CYCLE, GREY, INK, RED, Canvas, Draw
from tracer.table import Table

RUNS_MOST = 4000  # in one picture; beyond, its middle is shown
BINS = 100
# By section: what a reader who cannot see it is told, and how it is drawn.
Pictures = dict[str, tuple[str, Draw]]


def write_report(history: History, path: str | Path) -> None:
    drawn = _pictures(history)
    body = [
        _head(history),
        _section(
            "transfers",
            "Transfers",
            "Who sent to whom, and when? A lane for each node that sends, a colour for each that "
            "receives.",
            drawn,
            [_links(history)],
        ),
        _section("use", "Links", "How much did each node send and get?", drawn, []),
        _section(
            "delays",
            "Delays",
            "How many versions late were updates applied?",
            drawn,
            [_waits(history)],
        ),
        _section("fates", "Fates", "What became of the updates?", drawn, [_fates(history)]),
    ]
    if history.job.get("replica"):
        body.append(
            _section(
                "replica",
                "Replica",
                "How far was the replica behind? This would have been lost with the server.",
                drawn,
                [],
            )
        )
    parts.write_page("MLfabric job", body, path)


def _pictures(history: History) -> Pictures:
    drawn: Pictures = {
        "delays": ("How many updates were applied so many versions late", _delays(history)),
    }
    if history.runs:
        drawn["transfers"] = ("Transfers of each node over time", _transfers(history))
        drawn["use"] = ("Rates out of and into each node over time", _use(history))
    if history.lacks:
        drawn["replica"] = ("Updates that the replica lacked, and their norms", _behind(history))
    return drawn


def _section(name: str, title: str, question: str, drawn: Pictures, tables: list[Table]) -> str:
    figure = [parts.figure(f"{name}.{name}", *drawn[name])] if name in drawn else []
    return parts.section(name, title, question, figure, [parts.table(t) for t in tables])


def _head(history: History) -> str:
    job, fates = history.job, history.fates
    servers, replicas = int(job.get("servers", 1)), int(job.get("replica", 0))
    facts = [
        f"{job['workers']} workers, {servers} server{'s' if servers > 1 else ''}"
        + (f", {replicas} replica{'s' if replicas > 1 else ''}" if replicas else ""),
        f"{history.span_s:.1f} s",
        f"delay bound {job['delay_bound']}",
        f"momentum {float(job.get('momentum', 0)):g}",
    ]
    if history.took_over:
        facts.append(history.takeovers)
    dropped = sum(history.dropped.values())
    cards = [
        ("updates", f"{history.updates:,}", "that workers offered"),
        ("committed", f"{fates['committed']:,}", "by the server"),
        ("dropped", f"{dropped:,}", "before they were applied"),
        ("lost", f"{fates['lost']:,}", "with a server"),
        ("groups", f"{history.groups:,}", f"summed on the way, in {history.plans:,} plans"),
        ("to commit", _ms(history.applied_after_s), "from a request, median"),
    ]
    missed = f" {history.missed:,} events found no room and are missing." * bool(history.missed)
    return (
        f"<header><h1>MLfabric job</h1><p>{html.escape(' · '.join(facts))}</p></header>"
        + parts.cards(cards, f"As the scheduler recorded it.{missed}")
    )


def _ms(times: list[float]) -> str:
    return f"{1e3 * quantile(times, 0.5):.3g} ms" if times else "-"


def _links(history: History) -> Table:
    rows = [
        {
            "from": source,
            "to": target,
            "mb": link.bits / 8e6,
            "mbit_per_s": link.bits / link.busy_s / 1e6 if link.busy_s > 0 else 0.0,
        }
        for (source, target), link in sorted(history.links.items())
    ]
    return Table.of_rows("What links carried", rows, "mbit per s: while something was carried.")


def _waits(history: History) -> Table:
    rows = [
        {
            "from": what,
            **{f"{name}_ms": 1e3 * quantile(times, q) for name, q in QUANTILES},
        }
        for what, times in history.waits.items()
    ]
    return Table.of_rows("How long updates took", rows)


QUANTILES = (("median", 0.5), ("p90", 0.9), ("p99", 0.99))


def _fates(history: History) -> Table:
    rows = [{"fate": name, "updates": n} for name, n in history.fates.most_common()]
    note = "docs/fabric.md says what each reason means; a lost update had been committed before."
    return Table.of_rows("Updates", rows, note)


def _nodes(names: set[str]) -> list[str]:
    """Servers and replicas, then workers, by rank."""

    def place(name: str) -> tuple[int, int]:
        kind, _, rank = name.partition(" ")
        return (["server", "replica", "worker"].index(kind), int(rank or 0))

    return sorted(names, key=place)


def _transfers(history: History) -> Draw:
    begin = max(0, (len(history.runs) - RUNS_MOST) // 2)
    runs = sorted(history.runs, key=lambda run: run.start_s)[begin : begin + RUNS_MOST]
    lanes = _nodes({run.source for run in runs})
    targets = _nodes({run.target for run in runs})

    def draw(canvas: Canvas) -> None:
        axes = canvas.axes(1.2 + 0.28 * max(len(lanes), 3))[0]
        for number, target in enumerate(targets):
            mine = [run for run in runs if run.target == target]
            axes.barh(
                [lanes.index(run.source) for run in mine],
                [run.end_s - run.start_s for run in mine],
                left=[run.start_s for run in mine],
                height=0.7, color=CYCLE[number % len(CYCLE)], label=f"to {target}",
            )  # fmt: skip
        axes.set_yticks(range(len(lanes)), lanes)
        axes.set(xlabel="seconds", ylim=(max(len(lanes), 3) - 0.5, -0.5))
        axes.grid(axis="x")
        canvas.figure.legend(
            *axes.get_legend_handles_labels(),
            loc="outside upper left",
            ncols=2 if canvas.narrow else 5,
        )

    return draw


def _use(history: History) -> Draw:
    """A transfer's bits are spread evenly over its time."""
    end_s = max(run.end_s for run in history.runs)
    edges = np.linspace(0, end_s, BINS + 1)
    rates: dict[str, list[Array]] = defaultdict(lambda: [np.zeros(BINS), np.zeros(BINS)])
    for run in history.runs:
        lasted = max(run.end_s - run.start_s, 1e-9)
        within = np.minimum(edges[1:], run.end_s) - np.maximum(edges[:-1], run.start_s)
        share = np.maximum(within, 0) / lasted * run.bits / (edges[1] - edges[0]) / 1e6
        rates[run.source][0] += share
        rates[run.target][1] += share
    nodes = _nodes(set(rates))

    def draw(canvas: Canvas) -> None:
        axes = canvas.axes(1.1 * len(nodes) + 1.0, len(nodes))
        for one, node in zip(axes, nodes):
            for way, colour, name in zip(rates[node], (BLUE, GREY), ("out", "in")):
                one.plot(edges[:-1], way, color=colour, label=name, drawstyle="steps-post")
            one.set(ylabel="Mbit/s", ylim=(0, None), xlim=(0, end_s), title=node)
            one.grid(axis="y")
        axes[-1].set(xlabel="seconds")
        handles = axes[0].get_legend_handles_labels()
        canvas.figure.legend(*handles, loc="outside upper left", ncols=2)

    return draw


def _delays(history: History) -> Draw:
    bound = int(history.job["delay_bound"])

    def draw(canvas: Canvas) -> None:
        axes = canvas.axes(2.6)[0]
        most = max([*history.delays, 1])
        axes.bar(list(history.delays), list(history.delays.values()), color=BLUE, width=0.8)
        if bound <= 3 * most:
            axes.axvline(bound + 0.5, color=RED)
            axes.annotate(f" bound {bound}", (bound + 0.5, 0.9), xycoords=("data", "axes fraction"))
        axes.set(xlabel="versions late", ylabel="updates", xlim=(0, None))
        axes.grid(axis="y")

    return draw


def _behind(history: History) -> Draw:
    at = [lack.at_s for lack in history.lacks]

    def draw(canvas: Canvas) -> None:
        counts, norms = canvas.axes(3.6, 2)
        counts.plot(
            at, [lack.updates for lack in history.lacks], color=BLUE, drawstyle="steps-post"
        )
        norms.plot(at, [lack.norm for lack in history.lacks], color=BLUE, drawstyle="steps-post")
        bound = float(history.job.get("divergence_bound", 0))
        if bound > 0:
            norms.axhline(bound, color=RED)
            norms.annotate(f" bound {bound:g}", (0, bound), color=INK)
        counts.set(ylabel="updates", ylim=(0, None))
        norms.set(ylabel="norms, added up", xlabel="seconds", ylim=(0, None))
        for axes in (counts, norms):
            axes.grid(axis="y")

    return draw
