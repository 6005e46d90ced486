"""A line chart as SVG, without any library."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence

Line = Sequence[tuple[float, float]]
WIDTH, HEIGHT = 720, 300
LEFT, RIGHT, TOP, BOTTOM = 60, 150, 30, 45
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999")
TICKS = 5


def _step(top: float) -> float:
    """A round distance between ticks: 1, 2 or 5 times a power of ten."""
    rough = top / TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * n for n in (1, 2, 5, 10) if power * n >= rough)


def line_chart(title: str, x_label: str, y_label: str, lines: Mapping[str, Line]) -> str:
    points = [point for line in lines.values() for point in line]
    x_top = max((x for x, _ in points), default=1.0) or 1.0
    y_top = max((y for _, y in points), default=1.0) or 1.0
    x_step, y_step = _step(x_top), _step(y_top)
    y_top = math.ceil(y_top / y_step) * y_step
    across, down = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def x_at(x: float) -> float:
        return LEFT + across * x / x_top

    def y_at(y: float) -> float:
        return TOP + down * (1 - y / y_top)

    def text(x: float, y: float, words: str, anchor: str = "middle", more: str = "") -> str:
        return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{words}</text>'

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        text(LEFT + across / 2, 18, html.escape(title), more=' font-size="13"'),
    ]
    for i in range(round(y_top / y_step) + 1):
        y = y_at(i * y_step)
        parts.append(f'<path d="M{LEFT} {y:.1f}h{across}" stroke="#ddd"/>')
        parts.append(text(LEFT - 6, y + 4, f"{i * y_step:g}", "end"))
    for i in range(int(x_top / x_step) + 1):
        parts.append(text(x_at(i * x_step), HEIGHT - BOTTOM + 16, f"{i * x_step:g}"))
    parts.append(text(LEFT + across / 2, HEIGHT - 8, html.escape(x_label)))
    turned = f' transform="rotate(-90 14 {TOP + down / 2:.1f})"'
    parts.append(text(14, TOP + down / 2, html.escape(y_label), more=turned))
    for n, (name, line) in enumerate(lines.items()):
        colour = COLOURS[n % len(COLOURS)]
        path = " ".join(f"{x_at(x):.1f},{y_at(y):.1f}" for x, y in line)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}"/>')
        y = TOP + 14 + 16 * n
        parts.append(f'<path d="M{WIDTH - RIGHT + 10} {y - 4}h16" stroke="{colour}"/>')
        parts.append(text(WIDTH - RIGHT + 30, y, html.escape(name), "start"))
    return "\n".join([*parts, "</svg>"]) + "\n"
