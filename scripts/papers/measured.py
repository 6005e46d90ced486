"""Finds figures: in docs/benchmarks/results where they are, else on the pages of benchmarks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from scripts.lab.benches.case import Row
from scripts.lab.report.markdown_table import tables
from scripts.lab.report.results import Results
from scripts.lab.report.series import Points
from scripts.lab.report.summary import headings
from scripts.papers.quantity import Quantity

DOCS = Path(__file__).resolve().parents[2] / "docs"
SPREAD = re.compile(r"(>? ?-?[\d.]+)(?: ± ([\d.]+))?(?: |$)")


@dataclass(frozen=True)
class Asked:
    """Patterns, each of which a case's words must hold; the system's is its whole name."""

    bench: str
    what: str
    system: str
    metric: str = "time"
    setting: str = ""


class Measured:
    def __init__(self, docs: Path = DOCS, more: tuple[Path, ...] = ()) -> None:
        """`more`: results files beside those that are kept."""
        self._docs, self._folder = docs, docs / "benchmarks"
        results = Results([*(self._folder / "results").glob("*.json"), *more])
        self.rows, self._series = results.rows, results.series
        self._pages: dict[str, list[Row]] = {}

    def rows_of(self, asked: Asked) -> list[Row]:
        """All that are meant; from the bench's page if no results of it are kept."""
        rows = [row for row in self.rows if row.bench == asked.bench] or self._page(asked.bench)
        return [
            row
            for row in rows
            if re.search(asked.what, row.what)
            and re.fullmatch(asked.system, row.system)
            and re.fullmatch(asked.metric, row.metric)
            and re.search(asked.setting, row.setting)
        ]

    def one(
        self, bench: str, what: str, system: str, metric: str = "time", setting: str = ""
    ) -> Quantity:
        """ValueError if several are meant: a figure that could be another one is none."""
        found = self.rows_of(Asked(bench, what, system, metric, setting))
        if len(found) > 1:
            raise ValueError(f"{bench}: {what}, {system}, {metric}: {len(found)} figures")
        return Quantity.of(found[0]) if found else Quantity()

    def gain(
        self, bench: str, what: str, ours: str, rival: str, metric: str = "time", setting: str = ""
    ) -> Quantity:
        """How many times as fast ours is."""
        slow, fast = (
            self.one(bench, what, name, metric, setting) for name in (re.escape(rival), ours)
        )
        return slow.over(fast)

    def points(self, kind: str, bench: str, what: str) -> dict[str, Points]:
        """What was seen while a case ran, by system."""
        found: dict[str, Points] = {}
        for (of, case, _), systems in self._series[kind].items():
            if of == bench and re.search(what, case):
                found |= systems
        return found

    def text(self, page: str) -> str:
        """Of one of docs."""
        return (self._docs / page).read_text()

    def cell(self, page: str, title: str, line: str, column: str) -> str:
        """One cell as it stands on a page of benchmarks; nothing if there is none."""
        for table in tables((self._folder / f"{page}.md").read_text()):
            if re.search(title, table.title) and column in table.heads:
                for row in table.rows:
                    if row[0] == line:
                        return row[table.heads.index(column)]
        return ""

    def _page(self, bench: str) -> list[Row]:
        """A page gives medians and spreads: three values stand for those."""
        if bench not in self._pages:
            file = self._folder / f"{bench}.md"
            known = bench in headings() and file.exists()
            self._pages[bench] = _rows(bench, file.read_text()) if known else []
        return self._pages[bench]


def _rows(bench: str, page: str) -> list[Row]:
    found = []
    for table in tables(page):
        what, _, rest = table.title.partition("; ")
        for system, *cells in table.rows:
            for metric, cell in zip(table.heads[1:], cells):
                read = SPREAD.match(cell)
                if read is None or cell.startswith(">"):
                    continue
                median, spread = float(read[1]), float(read[2] or 0.0)
                values = [median - spread, median, median + spread] if spread else [median]
                found.append(Row(bench, what, system, metric, "", rest, values))
    return found
