"""The report: one HTML file that holds everything it shows. No script, no network, no fonts."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from tracer.analysis import sections
from tracer.analysis.overheads import KINDS
from tracer.check import ERROR, Finding
from tracer.clocks import Alignment
from tracer.format.record import Ints
from tracer.progress import Progress
from tracer.report import figures, overview, parts, timeline
from tracer.report.advice import Advice, advise
from tracer.report.drawing import Canvas, Draw
from tracer.round_trip import MISSING, RoundTrips
from tracer.run import Run
from tracer.table import Section, Table

FINDINGS_MOST = 50


def write_report(
    run: Run,
    table: RoundTrips,
    alignment: Alignment,
    findings: Sequence[Finding],
    path: str | Path,
    quiet: bool = True,
) -> Advice:
    """Returns what it opens with."""
    advice = advise(run, table)
    answered = sections(run, table)
    pictures = _pictures(table, answered)
    with Progress("drawing the report", len(pictures), quiet) as progress:
        drawn: dict[str, list[str]] = {}
        for number, (name, says, draw) in enumerate(pictures):
            drawn.setdefault(name.split(".")[0], []).append(parts.figure(name, says, draw))
            progress.reached(number + 1)
    body = [
        _head(run, table),
        _opening(advice),
        overview.cards(table),
        _verdict(findings),
        _contents(answered),
        parts.section("time", overview.TITLE, overview.QUESTION, drawn["time"], []),
        parts.section(
            "timeline", "One iteration", _timeline_question(table), drawn["timeline"], []
        ),
    ]
    for section in answered:
        tables = [parts.table(found) for found in section.tables]
        body.append(
            parts.section(
                section.name, section.title, section.question, drawn.get(section.name, []), tables
            )
        )
    body.append(_clocks(alignment))
    title = f"Trace of run {run.header.run}" if run.header.run else "Trace report"
    parts.write_page(title, body, path)
    return advice


# Pictures of one table of a section's: section.table, what a reader who cannot see it is told.
OF_TABLES = (
    ("sizes.keys", "Bytes of a push, per key", figures.sizes),
    ("phases.iterations", "The three phases, iteration by iteration", figures.phases),
    ("phases.overlap", "Distribution curve of the overlap ratio", figures.overlap),
    ("overheads.distributions", "Distribution curves of the overheads", figures.distributions),
    *(
        (f"overheads.{kind}", f"Distribution curves of {kind}, per key", figures.distributions)
        for kind in KINDS
    ),
    ("steps.starts", "Start of each gradient's transfer against its index", figures.steps),
    ("exposed.layers", "Exposed communication per key", figures.exposed),
    ("life.parts", "Parts of a message's life, per key", figures.life),
    ("stragglers.workers", "How often each worker was last", figures.stragglers),
    ("balance.servers", "Bytes per server", figures.balance),
    ("inversion.keys", "Less urgent bytes before a message, per key", figures.inversion),
    ("critical.kinds", "What the critical path consists of", figures.critical),
    (
        "prophet.iterations",
        "What training waited for, iteration by iteration, and Prophet's blocks",
        figures.prophet,
    ),
)


def _pictures(table: RoundTrips, answered: list[Section]) -> list[tuple[str, str, Draw]]:
    """(section.name, what a reader who cannot see it is told, how to draw it)."""
    found = {section.name: section.figures for section in answered}
    iteration = timeline.middle_iteration(table)

    def shown(name: str, draw: Callable[[Canvas, Table], None]) -> Draw:
        section, _, which = name.partition(".")
        return lambda canvas: draw(canvas, found[section][which])

    return [
        *(
            (name, says, shown(name, draw))
            for name, says, draw in OF_TABLES
            if name.partition(".")[0] in found
        ),
        ("time.shares", overview.SAYS, lambda canvas: overview.draw(canvas, table)),
        (
            "timeline.iteration",
            f"Timeline of iteration {iteration} with all nodes",
            lambda canvas: timeline.draw(canvas, table, iteration),
        ),
        (
            "sizes.throughput",
            "Throughput over time",
            lambda canvas: figures.throughput(canvas, table),
        ),
    ]


def pictures(run: Run, table: RoundTrips) -> dict[str, Draw]:
    """All of the report's pictures by name, to be drawn elsewhere."""
    named = _pictures(table, sections(run, table))
    return {name.replace(".", "-"): draw for name, _, draw in named}


def _head(run: Run, table: RoundTrips) -> str:
    known: Ints = table.times[table.times != MISSING]
    seconds = float(known.max() - known.min()) / 1e6 if len(known) else 0.0
    records = sum(len(trace.records) for trace in run.all)
    facts = [
        f"{run.num_workers} workers, {run.num_servers} servers",
        f"{run.mode} mode, {run.training} training",
        f"{len(np.unique(table.iteration))} iterations in {seconds:.2f} s",
        f"{len(table.keys)} keys",
        f"{records:,} records",
    ]
    named = f" of run <code>{html.escape(run.header.run)}</code>" if run.header.run else ""
    return f"<header><h1>Trace{named}</h1><p>{' · '.join(facts)}</p></header>"


def _opening(advice: Advice) -> str:
    said = "".join(f"<p>{html.escape(sentence)}</p>" for sentence in advice.sentences)
    return f'<div id="advice">{said}</div>'


def _verdict(findings: Sequence[Finding]) -> str:
    errors = sum(finding.severity == ERROR for finding in findings)
    if not findings:
        return '<p class="good" id="check">Check: every rule holds.</p>'
    items = "".join(
        f'<li class="{f.severity}"><b>{f.severity}</b> {html.escape(f.where)}: '
        f"{html.escape(f.text)}</li>"
        for f in findings[:FINDINGS_MOST]
    )
    more = len(findings) - FINDINGS_MOST
    rest = f"<li>{more} more: run mercury trace check</li>" if more > 0 else ""
    kind = "bad" if errors else "fair"
    return (
        f'<details class="{kind}" id="check"{" open" if errors else ""}><summary>Check: '
        f"{errors} errors, {len(findings) - errors} warnings</summary><ul>{items}{rest}</ul>"
        "</details>"
    )


def _contents(answered: list[Section]) -> str:
    links = [
        ("time", overview.TITLE),
        ("timeline", "One iteration"),
        *((s.name, s.title) for s in answered),
    ]
    links.append(("clocks", "Clocks"))
    return "<nav>" + "".join(f'<a href="#{n}">{html.escape(t)}</a>' for n, t in links) + "</nav>"


def _timeline_question(table: RoundTrips) -> str:
    iteration = timeline.middle_iteration(table)
    return f"What did every node do when? Iteration {iteration}; one lane per key."


def _clocks(alignment: Alignment) -> str:
    clocks = list(alignment.clocks.values())
    table = Table(
        "What was added to each node's times",
        {
            "node": [clock.node for clock in clocks],
            "add_us": [clock.add_us[0] for clock in clocks],
            "drift_us": [clock.add_us[-1] - clock.add_us[0] for clock in clocks],
            "within_us": [clock.within_us if clock.known else float("nan") for clock in clocks],
        },
        "within: what was added may be wrong by this much before a message would arrive before it "
        "was sent.",
    )
    question = "How well are the differences between the nodes' clocks known?"
    return parts.section("clocks", "Clocks", question, [], [parts.table(table)])
