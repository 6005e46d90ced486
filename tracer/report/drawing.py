"""How pictures look, and how they become SVG or PNG. The only place that imports matplotlib."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tracer.errors import MissingExtraError, TraceError
from tracer.output import whole_file

Axes = Any
Draw = Callable[["Canvas"], None]

# Colours that people with any kind of colour vision can tell apart (Okabe and Ito).
BLUE, ORANGE, GREEN, PURPLE = "#0072b2", "#e69f00", "#009e73", "#cc79a7"
SKY, RED, YELLOW, GREY = "#56b4e9", "#d55e00", "#f0e442", "#9aa0a6"
CYCLE = (BLUE, ORANGE, GREEN, RED, PURPLE, SKY, YELLOW, GREY)
INK, FAINT, PAPER = "#202124", "#dadce0", "#ffffff"
# What a page decides, which may be dark: written as the page's own variables.
OF_PAGE = {INK: "var(--ink)", FAINT: "var(--line)", PAPER: "none"}
WIDE_IN, NARROW_IN = 9.0, 4.3
DPI = 150
LABEL_LENGTH = 40

STYLE = {
    "font.size": 9,
    "font.family": "sans-serif",
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": FAINT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.axisbelow": True,
    "grid.color": FAINT,
    "grid.linewidth": 0.6,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "svg.fonttype": "none",
    "figure.facecolor": PAPER,
    "axes.facecolor": PAPER,
}


def shortened(name: str, most: int = LABEL_LENGTH) -> str:
    """A name as a picture has it: its two ends, if it is long, since a picture leaves a label all
    the room that this takes.
    """
    if len(name) > most:
        ahead = (most - 1) // 2
        name = f"{name[:ahead]}…{name[len(name) - most + 1 + ahead :]}"
    return name.replace("$", r"\$")  # which would begin a formula


class Canvas:
    """One picture in the making: wide or narrow, as high as its content needs."""

    def __init__(self, narrow: bool, figure: Any) -> None:
        self.narrow = narrow
        self.figure = figure

    def axes(self, height_in: float, rows: int = 1) -> list[Axes]:
        self.figure.set_size_inches(NARROW_IN if self.narrow else WIDE_IN, height_in)
        axes = self.figure.subplots(rows, 1, squeeze=False)
        return [row[0] for row in axes]


@contextlib.contextmanager
def _drawn(draw: Draw, narrow: bool, salt: str) -> Iterator[Any]:
    """The picture in our style, which must hold while it is saved, too."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("drawing", "matplotlib") from None
    with mpl.rc_context({**STYLE, "svg.hashsalt": salt}):
        figure = Figure(layout="constrained")
        draw(Canvas(narrow, figure))
        yield figure


def svg(draw: Draw, name: str, narrow: bool, says: str) -> str:
    """An SVG element for a page. `name` keeps its ids apart from those of other pictures."""
    salt = f"{name}{'-narrow' if narrow else ''}"
    with _drawn(draw, narrow, salt) as figure:
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'(id="|url\(#|href="#)', rf"\g<1>{salt}-", text)
    for colour, chosen in OF_PAGE.items():
        text = text.replace(f": {colour}", f": {chosen}")
    # The page decides how large it is; the picture keeps its proportions.
    text = re.sub(r'<svg ([^>]*?)height="[^"]*"', r"<svg \1", text, count=1)
    text = re.sub(r'<svg ([^>]*?)width="[^"]*"', r"<svg \1", text, count=1)
    return text.replace("<svg ", f'<svg role="img" aria-label="{says}" ', 1).strip()


def save(draw: Draw, path: str | Path) -> None:
    """A file of its own, in the format that its name ends in."""
    kind = Path(path).suffix.lower().lstrip(".")
    if kind not in ("svg", "png"):
        raise TraceError(f"{path}: pictures are written as .svg or .png")
    with _drawn(draw, False, "file") as figure, whole_file(path) as file:
        figure.savefig(file, format=kind, dpi=DPI)
