"""One iteration with all nodes: who computed, sent, waited and answered when."""

from __future__ import annotations

import numpy as np

from tracer import round_trip as rt
from tracer.analysis.phases import edges, follows
from tracer.format.record import Ints
from tracer.grouping import group
from tracer.report.drawing import BLUE, GREEN, GREY, ORANGE, RED, Canvas, shortened
from tracer.round_trip import RoundTrips

LANE_IN = 0.11  # height of a key's lane, as long as there is room
HEIGHT_MOST_IN = 11.0
LANES_LEAST = 8
NAMED_MOST = 24  # keys with a name at each lane; of more, some have one
NAME_SIZE = 5.5  # so that names fit one below the other
NAME_LENGTH = 18
BAND_SHARE = 12  # keys for each lane's height of the computation's band


def middle_iteration(table: RoundTrips) -> int:
    """One that is typical: past the start, with a predecessor."""
    edge = edges(table)
    now = follows(edge)
    whole = np.unique(edge["iteration"][now] if len(now) else edge["iteration"])
    return int(whole[len(whole) // 2]) if len(whole) else 0


def draw(canvas: Canvas, table: RoundTrips, iteration: int) -> None:
    rows = table.take(table.iteration == iteration)
    keys = np.unique(rows.key)
    band = max(1, len(keys) // BAND_SHARE)
    lanes = len(keys) + 1 + band
    nodes = [("worker", w) for w in np.unique(rows.worker).tolist()]
    nodes += [("server", s) for s in np.unique(rows.server).tolist()]
    height = min(HEIGHT_MOST_IN, 1.2 + LANE_IN * max(lanes, LANES_LEAST) * len(nodes))
    axes = canvas.axes(height)[0]
    known = rows.times[rows.times != rt.MISSING]
    start = _start(table, iteration, int(known.min()) if len(known) else 0)
    packets = rows.by_packets
    at_server = ("first to last packet in", "sums going out") if packets else (
        "gradients in, until confirmed", "search",
    )  # fmt: skip
    marks: list[tuple[float, str]] = []
    named: list[tuple[float, str]] = []
    for number, (role, rank) in enumerate(nodes):
        top = number * lanes
        mine = rows.take((rows.worker if role == "worker" else rows.server) == rank).in_turn()
        lane = top + band + np.searchsorted(keys, mine.key)
        if role == "worker":
            _computation(axes, table, rank, iteration, top + (band - 1) / 2, start, band)
            bars = (
                (rt.W_PUSH_SEND, rt.W_PUSH_RECV, BLUE),
                (rt.W_PULL_SEND, rt.W_PULL_RECV, ORANGE),
            )
        else:
            bars = ((rt.S_PUSH_RECV, rt.S_PUSH_SEND, GREEN), (rt.S_PULL_RECV, rt.S_PULL_SEND, RED))
        for half, (begin, end, colour) in enumerate(bars):
            # Packets' way there and back overlap: each has half a lane.
            middle, tall = (lane + (half - 0.5) * 0.4, 0.4) if packets else (lane, 0.8)
            there = mine.has(begin, end)
            left = (mine.times[begin][there] - start) / 1000
            width = (mine.times[end][there] - mine.times[begin][there]) / 1000
            axes.barh(
                middle[there], width, left=left, height=tall,
                color=colour, edgecolor=colour, linewidth=0.5,
            )  # fmt: skip
        marks.append((top + (band - 1) / 2, f"{role} {rank}"))
        named += [(top + band + place, name) for place, name in _lane_names(table, keys)]
        if number:
            axes.axhline(top - 0.75, color=GREY, linewidth=0.5)
    axes.set_yticks([place for place, _ in marks], [name for _, name in marks])
    axes.set_yticks(
        [place for place, _ in named], [name for _, name in named], minor=True, fontsize=NAME_SIZE
    )
    axes.tick_params(axis="y", which="both", length=0)
    axes.set(ylim=(len(nodes) * lanes - 0.5, -1))
    axes.set(xlabel="ms since this iteration's computation began")
    axes.grid(axis="x")
    _legend(canvas, axes, at_server, packets)


def _lane_names(table: RoundTrips, keys: Ints) -> list[tuple[int, str]]:
    """What to write at which of a node's lanes."""
    every = -(-len(keys) // NAMED_MOST)
    names = [(i, f"{key} {table.name(key)}") for i, key in enumerate(keys.tolist())][::every]
    return [(place, shortened(name, NAME_LENGTH)) for place, name in names]


def _legend(canvas: Canvas, axes: object, at_server: tuple[str, str], packets: bool) -> None:
    from matplotlib.patches import Patch

    sending = "push: handed over to last packet" if packets else "push, until confirmed"
    names = (
        (GREY, "computation"),
        (BLUE, sending),
        (ORANGE, "first to last sum" if packets else "pull, until answered"),
        (GREEN, f"server: {at_server[0]}"),
        (RED, f"server: {at_server[1]}"),
    )
    canvas.figure.legend(
        handles=[Patch(color=colour, label=name) for colour, name in names],
        loc="outside upper left",
        ncols=2 if canvas.narrow else 3,
    )


def _start(table: RoundTrips, iteration: int, otherwise: int) -> int:
    """When the first worker had its last sum of the iteration before."""
    before = table.take((table.iteration == iteration - 1) & table.has(rt.W_PULL_RECV))
    last = group(before.worker).most(before.times[rt.W_PULL_RECV])
    return int(last.min()) if len(last) else otherwise


def _computation(
    axes: object, table: RoundTrips, worker: int, iteration: int, lane: float, start: int, band: int
) -> None:
    edge = edges(table.take(table.worker == worker))
    for place in follows(edge).tolist():
        if int(edge["iteration"][place]) == iteration:
            begin, end = int(edge["before"][place]), int(edge["last_push"][place])
            axes.barh(  # type: ignore[attr-defined]
                [lane], [(end - begin) / 1000], left=[(begin - start) / 1000], height=0.8 * band,
                color=GREY, linewidth=0,
            )  # fmt: skip
