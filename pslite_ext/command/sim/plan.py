"""`mercury sim plan`: how many servers so many workers are worth."""

from __future__ import annotations

import argparse

from pslite_ext.command.sim.answer import Answer, hosts_of, job_of, network_of
from pslite_ext.command.sim.identical_workers import Point, iterate
from pslite_ext.forecast.model import ModelError, Options
from pslite_ext.forecast.model.job import number
from pslite_ext.forecast.simulate.scheme import SCHEMES
from pslite_ext.quantity import as_rate, bytes_per_second
from tracer.progress import Progress
from tracer.report.drawing import BLUE, GREEN, ORANGE, Canvas, Draw
from tracer.table import Table


def answer(options: argparse.Namespace) -> Answer:
    job, rate = job_of(options), bytes_per_second(options.bandwidth)
    workers = hosts_of(options, options.workers)
    if options.policy not in SCHEMES:
        raise ModelError(f"policy '{options.policy}' has no servers; {', '.join(SCHEMES)} have")
    worth = number("--worth", options.worth)
    network = network_of(options)
    known = Options.of({**network, "servers": workers})
    found: dict[int, Point] = {}
    most = 2 * workers

    def try_out(servers: int) -> float:
        if servers not in found:
            found[servers] = iterate(job, options.policy, workers, servers, rate, known)
            progress.reached(len(found))
        return found[servers].iteration_s

    def limit() -> float:
        return min(point.iteration_s for point in found.values()) * (1 + worth / 100)

    with Progress("simulating", 2 * most.bit_length(), options.quiet) as progress:
        servers = 1
        while servers < most:
            try_out(servers)
            servers *= 2
        try_out(most)
        # The fewest that are enough lie between two of the powers tried: halve until found.
        enough = min(count for count, point in found.items() if point.iteration_s <= limit())
        too_few = max((count for count in found if count < enough), default=0)
        while enough - too_few > 1:
            middle = (enough + too_few) // 2
            if try_out(middle) <= limit():
                enough = middle
            else:
                too_few = middle
    counts = sorted(found)
    points = [found[count] for count in counts]
    table = Table(
        f"{options.workers} workers, {as_rate(rate)} a node, {options.policy}",
        {
            "servers": counts,
            "iteration_ms": [point.iteration_s * 1e3 for point in points],
            "speed": [point.compute for point in points],
            "worker_links_busy": [point.worker_links for point in points],
            "server_links_busy": [point.server_links for point in points],
            "limited_by": [point.limited_by for point in points],
        },
    )
    return Answer(
        table=table,
        draw=_draw(table),
        after=[
            f"{enough} servers are enough: of the numbers tried, none makes an iteration more than "
            f"{worth:g}% shorter than {found[enough].iteration_s * 1e3:.3f} ms",
            *_moves(counts, points),
        ],
        values={
            "workers": options.workers,
            "enough_servers": enough,
            "iteration_s": found[enough].iteration_s,
            "limited_by": found[enough].limited_by,
        },
    )


def _moves(counts: list[int], points: list[Point]) -> list[str]:
    """Where the bottleneck moves as servers are added."""
    lines = [f"with {counts[0]} server: limited by {points[0].limited_by}"]
    for before, count, point in zip(points, counts[1:], points[1:]):
        if point.limited_by != before.limited_by:
            lines.append(f"from {count} servers on: limited by {point.limited_by}")
    return lines


def _draw(table: Table) -> Draw:
    def draw(canvas: Canvas) -> None:
        (axes,) = canvas.axes(3.6)
        for label, column, colour in (
            ("computation", "speed", GREEN),
            ("workers' links", "worker_links_busy", BLUE),
            ("servers' links", "server_links_busy", ORANGE),
        ):
            axes.plot(table["servers"], table[column], "o-", ms=3, color=colour, label=label)
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter("{x:g}")
        axes.set(xlabel="servers", ylabel="busy share of an iteration", ylim=(0, 1.05))
        axes.grid(True)
        axes.legend()

    return draw
