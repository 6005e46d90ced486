"""Charts as SVG, without any library: lines, bars, and the timeline of an iteration."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence

Line = Sequence[tuple[float, float]]
Layer = Sequence[float]  # ready, back, forward, done: seconds since the iteration began
WIDTH, HEIGHT = 720, 300
LEFT, RIGHT, TOP, BOTTOM = 60, 185, 30, 45
ACROSS = WIDTH - LEFT - RIGHT
COLOURS = (
    *("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999"),
    *("#7fb8d8", "#eaae7f", "#7fcfb9", "#e5bcd3", "#f2cf7f", "#abd9f4", "#666666", "#cccccc"),
)
GREY = "#ddd"
TICKS = 5


def _step(top: float) -> float:
    """A round distance between ticks: 1, 2 or 5 times a power of ten."""
    rough = top / TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * n for n in (1, 2, 5, 10) if power * n >= rough)


def _top(values: Sequence[float]) -> tuple[float, float]:
    """Where an axis from 0 ends, and the distance of its ticks."""
    top = max(values, default=1.0) or 1.0
    step = _step(top)
    return math.ceil(top / step - 1e-9) * step, step


def _text(x: float, y: float, words: str, anchor: str = "middle", more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{html.escape(words)}</text>'


def _box(x: float, y: float, width: float, height: float, colour: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.3):.1f}" height="{height:.1f}" '
        f'fill="{colour}"/>'
    )


def _frame(title: str, height: int = HEIGHT) -> list[str]:
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        _text(WIDTH / 2, 18, title, more=' font-size="13"'),
    ]


def _upright(y_label: str, top: float, step: float) -> list[str]:
    """The axis on the left, with its grid."""
    down = HEIGHT - TOP - BOTTOM
    parts = []
    for i in range(round(top / step) + 1):
        y = TOP + down * (1 - i * step / top)
        parts.append(f'<path d="M{LEFT} {y:.1f}h{ACROSS}" stroke="{GREY}"/>')
        parts.append(_text(LEFT - 6, y + 4, f"{i * step:g}", "end"))
    turned = f' transform="rotate(-90 14 {TOP + down / 2:.1f})"'
    return [*parts, _text(14, TOP + down / 2, y_label, more=turned)]


def _legend(names: Sequence[str], colours: Sequence[str] = COLOURS) -> list[str]:
    parts = []
    for n, name in enumerate(names):
        y = TOP + 14 + 16 * n
        parts.append(_box(WIDTH - RIGHT + 10, y - 8, 12, 8, colours[n % len(colours)]))
        parts.append(_text(WIDTH - RIGHT + 27, y, name, "start"))
    return parts


def _close(parts: list[str]) -> str:
    return "\n".join([*parts, "</svg>"]) + "\n"


def line_chart(
    title: str, x_label: str, y_label: str, lines: Mapping[str, Line], doubling: bool = False
) -> str:
    """With `doubling`, the points' x are evenly spaced if each is twice the one before."""
    points = [point for line in lines.values() for point in line]
    xs = sorted({x for x, _ in points})
    y_top, y_step = _top([y for _, y in points])
    x_top, x_step = (max(xs, default=1.0) or 1.0), 1.0
    if not doubling:
        x_step = _step(x_top)
    down = HEIGHT - TOP - BOTTOM

    def x_at(x: float) -> float:
        if not doubling:
            return LEFT + ACROSS * x / x_top
        span = math.log2(x_top / xs[0]) or 1.0
        return LEFT + 10 + (ACROSS - 20) * math.log2(x / xs[0]) / span

    parts = [*_frame(title), *_upright(y_label, y_top, y_step)]
    ticks = xs if doubling else [i * x_step for i in range(int(x_top / x_step) + 1)]
    for x in ticks:
        parts.append(_text(x_at(x), HEIGHT - BOTTOM + 16, f"{x:g}"))
    parts.append(_text(LEFT + ACROSS / 2, HEIGHT - 8, x_label))
    for n, line in enumerate(lines.values()):
        colour = COLOURS[n % len(COLOURS)]
        placed = [(x_at(x), TOP + down * (1 - y / y_top)) for x, y in line]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}"/>')
        if doubling:
            parts += [
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in placed
            ]
    return _close(parts + _legend(list(lines)))


def bar_chart(title: str, y_label: str, groups: Mapping[str, Mapping[str, float]]) -> str:
    """A group of bars for each key, in it a bar for each name. Commas break a key's line."""
    names = list(dict.fromkeys(name for bars in groups.values() for name in bars))
    top, step = _top([value for bars in groups.values() for value in bars.values()])
    down = HEIGHT - TOP - BOTTOM
    parts = [*_frame(title), *_upright(y_label, top, step)]
    wide = ACROSS / max(len(groups), 1)
    bar = 0.85 * wide / max(len(names), 1)
    for g, (group, bars) in enumerate(groups.items()):
        left = LEFT + g * wide + 0.075 * wide
        for n, name in enumerate(names):
            if name in bars:
                tall = down * bars[name] / top
                colour = COLOURS[n % len(COLOURS)]
                parts.append(_box(left + n * bar, TOP + down - tall, bar * 0.9, tall, colour))
        for line, words in enumerate(group.split(", ")):
            parts.append(_text(left + 0.425 * wide, HEIGHT - BOTTOM + 16 + 14 * line, words))
    return _close(parts + _legend(names))


PANEL = 150
PHASES = ("backward", "sum on its way", "forward")
PHASE_COLOURS = ("#0072b2", "#e69f00", "#009e73")


def timeline_chart(title: str, panels: Mapping[str, Sequence[Layer]]) -> str:
    """For each system a row per layer, the input's on top: computed, on its way, used."""
    height = TOP + PANEL * len(panels) + BOTTOM
    end = max((layer[3] for layers in panels.values() for layer in layers), default=1.0)
    parts = _frame(title, height)
    step = _step(end)
    for i in range(int(end / step) + 1):
        x = LEFT + ACROSS * i * step / end
        parts.append(f'<path d="M{x:.1f} {TOP}v{height - TOP - BOTTOM}" stroke="{GREY}"/>')
        parts.append(_text(x, height - BOTTOM + 16, f"{i * step:g}"))
    parts.append(_text(LEFT + ACROSS / 2, height - 8, "seconds since backward began"))
    for p, (name, layers) in enumerate(panels.items()):
        top = TOP + PANEL * p
        tall = (PANEL - 30) / max(len(layers), 1)
        parts.append(_text(LEFT + 4, top + 14, name, "start", ' font-weight="bold"'))
        before = [*(layer[0] for layer in layers[1:]), 0.0]  # backward comes from below
        for row, (layer, began) in enumerate(zip(layers, before)):
            ready, back, forward, done = layer
            spans = ((began, ready), (ready, back), (forward, done))
            for colour, (first, last) in zip(PHASE_COLOURS, spans):
                x, wide = LEFT + ACROSS * first / end, ACROSS * (last - first) / end
                parts.append(_box(x, top + 20 + row * tall, wide, tall * 0.85, colour))
    return _close(parts + _legend(PHASES, PHASE_COLOURS))
