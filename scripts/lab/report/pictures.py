"""The charts of docs/benchmarks, from the rows and series of results files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from scripts.lab.benches.case import Row
from scripts.lab.benches.scenarios import GROWING
from scripts.lab.report import prophet_tables
from scripts.lab.report.chart import Line, bar_chart, line_chart, timeline_chart
from scripts.lab.report.results import Place
from scripts.lab.report.scaling_table import placed
from scripts.lab.report.series import Points
from scripts.lab.systems.system import MERCURY

DRAWN = ("stock", "stock-p3", "zmq", MERCURY)  # where more lines would hide each other
APART = ("network-bound", "as published", "as measured", "static", "one worker's link")
LOSS_AFTER = re.compile(r"loss after (?P<part>\d+) of (?P<of>\d+)")
SWEPT = re.compile(r"(?P<line>.*?),? (?P<kib>\d+) KiB$")


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
        panels = {name: layers for name, layers in systems.items() if name in DRAWN}
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

    def rates(self, rows: list[Row]) -> list[str]:
        """How near to the optimum, which mercury's prediction is, systems are at each rate."""
        lines = []
        for model, rates in prophet_tables.times(rows).items():
            drawn: dict[str, list[tuple[float, float]]] = {}
            for (share, _), of in rates.items():
                best = prophet_tables.seconds(of, MERCURY, "predicted time")
                for name in sorted(of, key=lambda name: name != prophet_tables.PROPHET):
                    took = prophet_tables.seconds(of, name)
                    if best is not None and took is not None:
                        point = (share, best / took)
                        short = name.replace("mercury-", "").replace(" KiB", "")
                        drawn.setdefault(short, []).append(point)
            title = f"{model}: optimum / time of an iteration"
            axes = ("share of the balanced rate", "optimum / time")
            lines += self._lines(f"prophet rates {model}", title, axes, drawn)
        return lines

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

    def growth(self, rows: Iterable[Row]) -> list[str]:
        """Workers' progress together, in that of one worker with one server."""
        times: dict[str, dict[int, float]] = {}
        for row in rows:
            _, found, nodes = row.what.partition(f"{GROWING}: ")
            if found and row.metric == "time":
                times.setdefault(row.system, {})[int(nodes)] = row.median
        lines = {
            system: [(float(n), n * of[1] / of[n]) for n in sorted(of)]
            for system, of in times.items()
            if 1 in of and len(of) > 1
        }
        counts = sorted({x for line in lines.values() for x, _ in line})
        ideal = {"ideal": [(x, x) for x in counts]} if counts else {}
        title = "Scaling: workers' progress together, one worker's being 1"
        return self._lines("scaling", title, ("workers", "speedup"), {**ideal, **lines}, True)

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

    def sweep(self, rows: list[Row]) -> list[str]:
        """A chart for each figure of each sweep that says how good a value is."""
        lines = []
        wanted = ("urgent, median", "goodput each way / link", "ratio to floor")
        for what in dict.fromkeys(row.what for row in rows):
            for metric in wanted:
                drawn: dict[str, list[tuple[float, float]]] = {}
                unit = ""
                for row in rows:
                    found = SWEPT.fullmatch(row.system)
                    if row.what == what and row.metric == metric and found:
                        name = found["line"].replace("mercury-", "")
                        drawn.setdefault(name, []).append((float(found["kib"]), row.median))
                        unit = f" [{row.unit}]" if row.unit else ""
                subject = what.partition(":")[0]
                axes = (f"{subject} [KiB]", f"{metric}{unit}")
                ordered = {name: sorted(line) for name, line in drawn.items()}
                title = f"{metric}, by {subject}"
                lines += self._lines(f"sweep {subject} {metric}", title, axes, ordered, True)
        return lines


def _model(what: str) -> str:
    """The model, and what sets a case apart from the model's others."""
    model = what.partition(" x ")[0]
    apart = [words for words in APART if words in what]
    return ", ".join([model, *apart])
