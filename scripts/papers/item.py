"""One figure, table or claim of a paper, and what there is of it here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scripts.lab.report.markdown_table import Table

HEADS = ("", "the paper", "here", "model or simulator", "here / paper", "remarks", "from")
NOT_HERE = "not measurable here"


@dataclass(frozen=True)
class Item:
    name: str  # Fig. 13a
    paper: str  # what it shows, and its figures
    here: str  # what was measured, or where it is
    source: str  # the page, the file or the command it comes from
    model: str = ""
    ratio: str = ""  # here / paper, where both are figures of the same thing
    remarks: str = ""

    def cells(self) -> list[str]:
        cells = (
            *(self.name, self.paper, self.here, self.model, self.ratio, self.remarks),
            self.source,
        )
        return [cell.replace("|", "/").replace("\n", " ") or "-" for cell in cells]


@dataclass(frozen=True)
class Paper:
    title: str  # of the section
    cited: str
    scale: str  # how the paper's set-up and ours compare
    first: Sequence[str]  # for the first screen: what holds, what does not, what is better
    items: Sequence[Item]
    pictures: Sequence[tuple[str, str]] = ()  # title and file

    def lines(self) -> list[str]:
        table = Table(f"{len(self.items)} figures, tables and claims:", HEADS, self._rows())
        shown = [line for title, file in self.pictures for line in ("", f"![{title}]({file})")]
        return ["", f"## {self.title}", "", self.cited, "", self.scale, *shown, *table.lines()]

    def _rows(self) -> list[list[str]]:
        return [item.cells() for item in self.items]


def page(bench: str) -> str:
    """What a row's figures come from: that page names commands, commits and repeats."""
    return f"[{bench}](benchmarks/{bench}.md)"


def doc(name: str, words: str = "") -> str:
    return f"[{words or name}]({name}.md)"
