"""The charts of docs/benchmarks.md as SVG: lines, bars, and the timeline of an iteration."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

from tracer.report.drawing import BLUE, CYCLE, GREEN, ORANGE, Axes, Canvas, Draw, svg

Line = Sequence[tuple[float, float]]
Layer = Sequence[float]  # ready, back, forward, done: seconds since the iteration began
HEIGHT_IN, PANEL_IN = 3.75, 1.9
PALE = ("#7fb8d8", "#f2cf7f", "#7fcfb9", "#eaae7f", "#e5bcd3", "#abd9f4", "#000000", "#cccccc")
PHASES = {"backward": BLUE, "sum on its way": ORANGE, "forward": GREEN}


def _chart(title: str, draw: Draw) -> str:
    return svg(draw, "chart", narrow=False, says=html.escape(title)) + "\n"


def _axes(canvas: Canvas, title: str, y_label: str) -> Axes:
    (axes,) = canvas.axes(HEIGHT_IN)
    axes.set(title=title, ylabel=y_label)
    axes.set_prop_cycle(color=CYCLE + PALE)
    axes.grid(axis="y")
    return axes


def _legend(canvas: Canvas, axes: Axes) -> None:
    handles, names = axes.get_legend_handles_labels()
    canvas.figure.legend(handles, names, loc="outside right upper")


def line_chart(
    title: str, x_label: str, y_label: str, lines: Mapping[str, Line], doubling: bool = False
) -> str:
    """With `doubling`, the points' x are evenly spaced if each is twice the one before."""

    def draw(canvas: Canvas) -> None:
        axes = _axes(canvas, title, y_label)
        for name, line in lines.items():
            x, y = zip(*line) if line else ((), ())
            axes.plot(x, y, label=name, linewidth=1, marker="o" if doubling else "", markersize=4)
        axes.set_xlabel(x_label)
        axes.set_ylim(bottom=0)
        if doubling:
            axes.set_xscale("log", base=2)
            axes.set_xticks(sorted({x for line in lines.values() for x, _ in line}))
            axes.xaxis.set_major_formatter("{x:g}")
        else:
            axes.set_xlim(left=0)
        _legend(canvas, axes)

    return _chart(title, draw)


def bar_chart(title: str, y_label: str, groups: Mapping[str, Mapping[str, float]]) -> str:
    """A group of bars for each key, in it a bar for each name. Commas break a key's line."""
    names = list(dict.fromkeys(name for bars in groups.values() for name in bars))
    wide = 0.85 / max(len(names), 1)

    def draw(canvas: Canvas) -> None:
        axes = _axes(canvas, title, y_label)
        for n, name in enumerate(names):
            there = [(g, bars[name]) for g, bars in enumerate(groups.values()) if name in bars]
            places = [g + (n - (len(names) - 1) / 2) * wide for g, _ in there]
            axes.bar(places, [value for _, value in there], 0.9 * wide, label=name)
        axes.set_xticks(range(len(groups)), [group.replace(", ", "\n") for group in groups])
        _legend(canvas, axes)

    return _chart(title, draw)


def timeline_chart(title: str, panels: Mapping[str, Sequence[Layer]]) -> str:
    """For each system a row per layer, the input's on top: computed, on its way, used."""
    end = max((layer[3] for layers in panels.values() for layer in layers), default=1.0)

    def draw(canvas: Canvas) -> None:
        rows = canvas.axes(0.8 + PANEL_IN * len(panels), len(panels))
        for axes, (name, layers) in zip(rows, panels.items()):
            before = [*(layer[0] for layer in layers[1:]), 0.0]  # backward comes from below
            spans = (
                [(began, ready) for began, (ready, *_) in zip(before, layers)],
                [(ready, back) for ready, back, *_ in layers],
                [(forward, done) for *_, forward, done in layers],
            )
            for (phase, colour), of in zip(PHASES.items(), spans):
                starts = [first for first, _ in of]
                lengths = [last - first for first, last in of]
                axes.barh(
                    range(len(of)), lengths, 0.85, starts, color=colour, label=phase, clip_on=False
                )
            axes.set(ylabel=name, yticks=(), xlim=(0, end))
            axes.invert_yaxis()
            axes.grid(axis="x")
        rows[0].set_title(title)
        rows[-1].set_xlabel("seconds since backward began")
        _legend(canvas, rows[0])

    return _chart(title, draw)
