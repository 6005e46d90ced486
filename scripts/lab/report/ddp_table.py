"""How many times as long an iteration of DDP's takes as one of ours: all cases in one table.

Of DDP's sizes of buckets the best counts, each model's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from scripts.lab.benches.case import Row, Setting
from scripts.lab.report.markdown_table import Table
from scripts.lab.report.results import by_case, cell, quotients
from scripts.lab.report.scaling_table import Placed, by_size, placed
from scripts.lab.systems.system import DDP, TORCH


def against_ddp(rows: Sequence[Row]) -> list[str]:
    ours: dict[Placed, float] = {}
    ddps: dict[Placed, float] = {}
    for row in rows:
        place = placed(row)
        if place is None or not place.beside:  # a ring has no other hosts
            continue
        if row.system == TORCH:
            ours[place] = row.median
        elif row.system.startswith(DDP):
            ddps[place] = min(row.median, ddps.get(place, row.median))
    compared = {place: ddps[place] / of for place, of in ours.items() if place in ddps}
    models = list(dict.fromkeys(place.model for place in compared))
    heads = ["hosts", "of the models", "computation / way", "computation / ring", *models]
    lines = []
    for at in sorted({place._replace(model="") for place in compared}, key=by_size):
        ring = Setting(at.n, at.n).load(servers=False)
        gains = [compared.get(at._replace(model=model)) for model in models]
        line = [f"{at.n}, {at.rate:g} Mbit/s", f"{at.share:g}"]
        line += [f"{at.computed:g}", f"{at.computed / ring:.2f}"]
        lines.append([*line, *("" if gain is None else f"{gain:.2f}" for gain in gains)])
    title = "Time of an iteration, DDP's with the best of its buckets / ours:"
    return Table(title, heads, lines).lines() + _on_loopback(rows)


def _on_loopback(rows: Sequence[Row]) -> list[str]:
    gains: dict[str, Row] = {}
    exchanges = by_case(row for row in rows if row.what.endswith(", no computation"))
    for what, of in exchanges.items():
        ddps = [metrics["time"] for name, metrics in of.items() if name.startswith(DDP)]
        if TORCH in of and ddps:
            ours, best = of[TORCH]["time"], min(ddps, key=lambda row: row.median)
            by_turns = ours.run == best.run
            values = quotients(best.values, ours.values, by_turns)
            gains[what.partition(" ")[0]] = replace(ours, values=values, by_turns=by_turns)
    title = "An exchange on loopback, DDP's time with the best of its buckets / ours:"
    return Table(title, [*gains], [[*map(cell, gains.values())]] if gains else []).lines()
