"""The charts of docs/benchmarks, from the rows and series of results files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from scripts.lab.benches.case import Row
from scripts.lab.report.chart import Line, bar_chart, line_chart, timeline_chart
from scripts.lab.report.results import Place
from scripts.lab.report.scaling_table import placed
from scripts.lab.report.series import Points
from scripts.lab.systems.system import MERCURY

DRAWN = ("stock", "stock-p3", "zmq", MERCURY)  # where more lines would hide each other
APART = ("network-bound", "as published", "as measured", "static", "one worker's link")
LOSS_AFTER = re.compile(r"loss after (?P<part>\d+) of (?P<of>\d+)")


class Pictures:
    """Writes charts into a folder; every method returns what shows them on a page there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def _shown(self, name: str, title: str, svg: str) -> list[str]:
        file = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") + ".svg"
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / file).write_text(svg)
        return ["", f"![{title}]({file})"]

    def _lines(
        self,
        name: str,
        title: str,
        axes: tuple[str, str],
        lines: Mapping[str, Line],
        doubling: bool = False,
    ) -> list[str]:
        """Nothing is shown of nothing."""
        return self._shown(name, title, line_chart(title, *axes, lines, doubling)) if lines else []

    def throughput(self, place: Place, systems: dict[str, Points]) -> list[str]:
        """Uplink and downlink of worker 0 over time."""
        lines = []
        for column, way in ((1, "sent"), (2, "received")):
            title = f"{place[1]}: {way} by worker 0"
            drawn = {
                name: [(point[0], point[column] / 1e6) for point in series]
                for name, series in systems.items()
                if name in DRAWN or len(systems) <= len(DRAWN)
            }
            name = f"{place[0]} {place[1]} {way}"
            lines += self._lines(name, title, ("seconds", "Mbit/s"), drawn)
        return lines

    def timeline(self, place: Place, systems: dict[str, Points]) -> list[str]:
        few = len(systems) <= len(DRAWN)
        panels = {name: layers for name, layers in systems.items() if few or name in DRAWN}
        title = f"{place[1]}: one iteration of worker 0, layer by layer"
        chart = timeline_chart(title, panels or systems)
        return self._shown(f"{place[0]} {place[1]} timeline", title, chart)

    def blocks(self, place: Place, systems: dict[str, Points]) -> list[str]:
        """How large Prophet's blocks are, and the rate that it assumes, over time."""
        lines = []
        for name, blocks in systems.items():
            title = f"{place[1]}: {name}'s blocks on worker 0"
            drawn = {
                "mean block, kB": [(t, size / 1e3) for t, _, size in blocks],
                "rate, 10 kB/s": [(t, rate / 1e4) for t, rate, _ in blocks],
            }
            of_name = f"{place[0]} {place[1]} {name} blocks"
            lines += self._lines(of_name, title, ("seconds", "kB"), drawn)
        return lines

    def speed(self, rows: Iterable[Row]) -> list[str]:
        """How near to the floor each system is, by model."""
        groups: dict[str, dict[str, float]] = {}
        bench = ""
        for row in rows:
            if row.metric == "ratio to floor":
                bench = row.bench
                groups.setdefault(_model(row.what), {})[row.system] = 1 / row.median
        if not groups:
            return []
        title = "Speed: floor / time of an iteration (1 is the optimum)"
        chart = bar_chart(title, "floor / time", groups)
        return self._shown(f"{bench} speed by system and model", title, chart)

    def curves(self, rows: Sequence[Row]) -> list[str]:
        """By what was trained, the loss after each part of the steps."""
        found: dict[str, dict[str, list[tuple[float, float]]]] = {}
        for row in rows:
            after = LOSS_AFTER.fullmatch(row.metric)
            if after:
                line = found.setdefault(row.what, {}).setdefault(row.system, [])
                line.append((int(after["part"]) / int(after["of"]), row.median))
        for row in rows:
            if row.metric == "loss" and row.what in found:
                found[row.what][row.system].append((1.0, row.median))
        lines = []
        for what, drawn in found.items():
            title = f"{what.partition(':')[0]}: loss"
            name = f"{rows[0].bench} {what.partition(',')[0]}"
            lines += self._lines(name, title, ("part of the steps", "loss"), drawn)
        return lines

    def scaling(self, rows: Sequence[Row]) -> list[str]:
        """By model: time / floor against the number of hosts, with most bytes, fastest links."""
        found: dict[str, dict[str, dict[int, tuple[float, float, float]]]] = {}
        for row in rows:
            place = placed(row)
            if place is None:
                continue
            where = "beside" if place.beside else "own hosts"
            line = found.setdefault(place.model, {}).setdefault(
                f"{row.system.replace(MERCURY, 'mercury')}, {where}", {}
            )
            taken = line.get(place.n)
            if taken is None or (place.share, place.rate) > taken[:2]:
                line[place.n] = (place.share, place.rate, row.median)
        lines = []
        for model, systems in found.items():
            drawn = {
                name: [(float(n), line[n][2]) for n in sorted(line)]
                for name, line in systems.items()
                if len(line) > 1
            }
            title = f"{model}: time of an iteration / floor, n workers and n servers"
            name = f"{rows[0].bench} {model}"
            lines += self._lines(name, title, ("n", "time / floor"), drawn, True)
        return lines


def _model(what: str) -> str:
    """The model, and what sets a case apart from the model's others."""
    model = what.partition(" x ")[0]
    apart = [words for words in APART if words in what]
    return ", ".join([model, *apart])
