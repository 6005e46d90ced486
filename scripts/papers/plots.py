"""The papers' figures drawn again, ours beside theirs where theirs are known."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from pslite_ext.forecast.model import sweep
from pslite_ext.forecast.model.papers import GBIT as RATES_OF_TABLE_2
from pslite_ext.forecast.model.papers import MEASURED
from pslite_ext.forecast.model.zoo import known_job
from scripts.lab.benches.mercury_paper import MODELS, PACKET_WORLDS, PACKETS
from scripts.lab.report.chart import Line, bar_chart, line_chart
from scripts.papers import mercury_model, mercury_names, mercury_speed, mlfabric, prophet, sketchdlc
from scripts.papers.measured import Measured
from scripts.papers.quantity import Quantity

Picture = tuple[str, str]  # title and file, as a page in docs/ shows it
SHORT = {
    "stock": "stock",
    "stock-p3": "stock with P3",
    mercury_names.SCHEDULER: "ByteScheduler",
    mercury_names.SCHEDULERS[1]: "ByteScheduler, tuned",
    mercury_names.FIFO: "without preemption",
    mercury_names.OURS: "Mercury",
}


class Plots:
    """Writes into docs/papers; nothing is shown of what was not measured."""

    def __init__(self, docs: Path, m: Measured) -> None:
        self._folder = docs / "papers"
        self._m = m

    def _shown(self, name: str, title: str, svg: str) -> Picture:
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / f"{name}.svg").write_text(svg)
        return title, f"papers/{name}.svg"

    def mercury(self) -> list[Picture]:
        return [
            *self._speed_by_bandwidth(),
            self._required(),
            *self._speed(),
            *self._packet_sizes(),
        ]

    def _speed_by_bandwidth(self) -> list[Picture]:
        pictures = []
        names = {"mercury": "Mercury", "fifo": "without preemption", "wfbp": "WFBP"}
        for model in ("vgg16", "bert_base"):
            gbit = np.geomspace(1, 64, 61)
            found = sweep(known_job(model), gbit * mercury_names.GBIT, names)
            lines: dict[str, Line] = {
                name: [*zip(map(float, gbit), map(float, found.speed(policy)))]
                for policy, name in names.items()
            }
            title = f"Mercury, Fig. 11, by the model: speed of {model}"
            svg = line_chart(title, "Gbit/s", "t_oracle / t_iter", lines)
            pictures.append(self._shown(f"mercury_fig11_{model}", title, svg))
        return pictures

    def _required(self) -> Picture:
        names = ("Mercury", "without preemption", "WFBP")
        groups = {model: dict(zip(names, mercury_model.required(model))) for model in MODELS}
        title = "Mercury, Fig. 12, by the model: bandwidth for 0.99 of full speed (BERT 0.90)"
        return self._shown("mercury_fig12", title, bar_chart(title, "Gbit/s", groups))

    def _speed(self) -> list[Picture]:
        groups: dict[str, dict[str, float]] = {}
        for model in MODELS:
            for n in mercury_names.NODES[model]:
                bars = {
                    name: found.median
                    for system, name in SHORT.items()
                    if (
                        found := self._m.one(
                            mercury_names.BENCH,
                            rf"^Fig. 13, {model} x",
                            re.escape(system),
                            "computation / time",
                            f"^{n} ",
                        )
                    ).known
                }
                if bars:
                    groups[f"{model}, {n}"] = bars
        title = "Mercury, Fig. 13: speed by model and number of workers, 1 is linear scaling"
        return self._bars("mercury_fig13", title, "computation / time", groups)

    def _packet_sizes(self) -> list[Picture]:
        lines: dict[str, Line] = {}
        for model, rate in PACKET_WORLDS:
            points = [
                (float(kib), found.median)
                for kib in PACKETS
                if (found := mercury_speed.by_packets(self._m, model, rate, kib)).known
            ]
            if points:
                lines[f"{model}, {rate / 1e6:g} Mbit/s"] = points
        if not lines:
            return []
        title = "Mercury, Fig. 17: speed by size of packets"
        svg = line_chart(title, "KiB", "computation / time", lines, doubling=True)
        return [self._shown("mercury_fig17", title, svg)]

    def prophet(self) -> list[Picture]:
        lines: dict[str, Line] = {}
        ours: dict[str, Callable[[str], float | None]] = {
            "prophet": lambda what: _known(prophet.samples(self._m, what, prophet.PROPHET)),
            "bytescheduler": lambda what: _known(prophet.rival(self._m, what)),
            "p3": lambda what: _known(prophet.samples(self._m, what, prophet.P3)),
        }
        for name, measured in ours.items():
            found = [(rate, measured(prophet.table_2(rate))) for rate in RATES_OF_TABLE_2]
            points = [(rate, value) for rate, value in found if value is not None]
            if points:
                lines[f"{name}, here"] = points
            lines[f"{name}, paper"] = [*zip(RATES_OF_TABLE_2, MEASURED[name])]
        title = "Prophet, Table 2: samples a second and worker, ResNet-50"
        svg = line_chart(title, "Gbit/s (here a tenth)", "samples / s", lines)
        return [*self._gpu(), self._shown("prophet_table2", title, svg)]

    def _gpu(self) -> list[Picture]:
        names = {mercury_names.SCHEDULER: "ByteScheduler", prophet.PROPHET: "Prophet"}
        seen = self._m.points("timeline", prophet.BENCH, "^Fig. 8, resnet152")
        lines = {name: use_of_gpu(seen[s]) for s, name in names.items() if s in seen}
        if not lines:
            return []
        title = "Prophet, Fig. 2: how much of the time the emulated GPU computes, ResNet-152"
        svg = line_chart(title, "seconds of an iteration", "share of each tenth", lines)
        return [self._shown("prophet_fig2", title, svg)]

    def mlfabric(self) -> list[Picture]:
        groups: dict[str, dict[str, float]] = {}
        for cell, theirs in mlfabric.TABLE_2.items():
            bars = {"A-30, paper": theirs}
            for name, system in (("A-30", mlfabric.A30), ("A-60", mlfabric.A60)):
                found = mlfabric.speed_up(self._m, cell, system)
                if found.known:
                    bars[f"{name}, here"] = found.median
            groups[" ".join(cell)] = bars
        title = "MLfabric, Table 2: times as fast as the ring"
        cells = self._bars("mlfabric_table2", title, "ring's time / ours", groups)
        error = ("error, %", lambda accuracy: 100 * (1 - accuracy))
        likely = ("perplexity", lambda log_likelihood: math.exp(-log_likelihood))
        return [
            *cells,
            *self._curves("7b", r"^C1 N1, to 0.8$", 0, "seconds", *error),
            *self._curves("7a", r"^C1 N1, to 0.8$", 1, "gradients of all workers", *error),
            *self._curves("7d", r"^LDA, C1 N1", 0, "seconds", *likely),
            *self._curves("7c", r"^LDA, C1 N1", 1, "updates of all workers", *likely),
        ]

    def _curves(
        self,
        figure: str,
        what: str,
        column: int,
        x_label: str,
        y_label: str,
        shown: Callable[[float], float],
    ) -> list[Picture]:
        """How good the model was, over time or over updates, in the first race."""
        lines: dict[str, Line] = {
            system: [(point[column], shown(point[2])) for point in points]
            for system, points in self._m.points("curve", mlfabric.BENCH, what).items()
            if "whole" not in system
        }
        if not lines:
            return []
        task = "LDA" if "LDA" in what else "digits"
        title = f"MLfabric, Fig. {figure}: {y_label} by {x_label}, {task}, C1 N1"
        svg = line_chart(title, x_label, y_label, lines)
        return [self._shown(f"mlfabric_fig{figure}", title, svg)]

    def sketchdlc(self) -> list[Picture]:
        groups: dict[str, dict[str, float]] = {}
        names = {sketchdlc.PAPER: "paper", sketchdlc.CLASSIC: "zmq", sketchdlc.PACKETS: "mercury"}
        for network in sketchdlc.NETWORKS:
            bars = {
                name: found.median
                for system, name in names.items()
                if (
                    found := sketchdlc.figure(self._m, network, sketchdlc.PHASES, "overlap", system)
                ).known
            }
            if bars:
                groups[network] = bars
        title = "SketchDLC, Fig. 10: communication that computation hides"
        return self._bars("sketchdlc_fig10", title, "%", groups)

    def _bars(
        self, name: str, title: str, y_label: str, groups: dict[str, dict[str, float]]
    ) -> list[Picture]:
        if not groups:
            return []
        return [self._shown(name, title, bar_chart(title, y_label, groups))]


def use_of_gpu(layers: Sequence[Sequence[float]], bin_s: float = 0.1) -> Line:
    """Of each `bin_s`, the share in which it computes; an iteration begins with the backward pass,
    which waits for nothing. `layers`: as the timeline of an iteration has them."""
    spans = [(0.0, layers[0][0]), *((forward, done) for *_, forward, done in layers)]
    end = max(done for _, done in spans)
    edges = np.append(np.arange(0.0, end, bin_s), end)
    busy, until = np.zeros(len(edges) - 1), 0.0
    for first, last in sorted(spans):  # which are rounded: one may begin before another has ended
        begun, until = max(first, until), max(last, until)
        busy += np.clip(until, edges[:-1], edges[1:]) - np.clip(begun, edges[:-1], edges[1:])
    shares = busy / np.diff(edges)
    return [(float(x), float(share)) for x, share in zip((edges[:-1] + edges[1:]) / 2, shares)]


def _known(quantity: Quantity) -> float | None:
    return quantity.median if quantity.known else None
