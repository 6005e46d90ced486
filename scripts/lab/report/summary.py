"""docs/benchmarks.md: what summary.md says, with figures from the tables of docs/benchmarks/.

In summary.md, `{page; pattern; ...; column}` stands for the least and the greatest figure of all
rows of a page where each pattern is a cell, or is found in the line above the table, in the
columns of that name. Patterns and column are regular expressions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from scripts.lab.report.markdown_table import tables
from scripts.lab.report.results import APART, SOME_APART

SUMMARY = Path(__file__).with_name("summary.md")
HEADING = re.compile(r"^## \[(.+)\]\(benchmarks/(\w+)\.md\)$", re.MULTILINE)
FIGURES = re.compile(r"\{(.+?)\}")
NOT_MEASURED = "(not measured)"


def headings() -> dict[str, str]:
    """Of benches, in the order of the page."""
    return {bench: heading for heading, bench in HEADING.findall(SUMMARY.read_text())}


def pages(folder: Path) -> dict[str, str]:
    """Those that there are."""
    files = {bench: folder / f"{bench}.md" for bench in headings()}
    return {bench: file.read_text() for bench, file in files.items() if file.exists()}


def summary(known: Mapping[str, str]) -> str:
    """Sections without pages are left out."""
    sections = re.split(r"^(?=## )", SUMMARY.read_text(), flags=re.MULTILINE)
    there = [s for s in sections if (of := HEADING.match(s)) is None or of[2] in known]
    return FIGURES.sub(lambda asked: figures(known, asked[1]), "".join(there).rstrip() + "\n")


def figures(known: Mapping[str, str], asked: str) -> str:
    page, *patterns, column = asked.split("; ")
    found = [
        cell
        for table in tables(known[page])
        for row in table.rows
        if all(_is_about(pattern, table.title, row) for pattern in patterns)
        for head, cell in zip(table.heads, row)
        if re.fullmatch(column, head)
    ]
    numbers = [cell for cell in found if re.match(r"-?\d", cell)]
    cells = sorted((cell.split()[0] for cell in numbers), key=float)
    apart = f" {SOME_APART}" if any(APART in cell for cell in numbers) else ""
    return " to ".join(dict.fromkeys((cells[0], cells[-1]))) + apart if cells else NOT_MEASURED


def _is_about(pattern: str, title: str, row: Sequence[str]) -> bool:
    return bool(re.search(pattern, title) or any(re.fullmatch(pattern, cell) for cell in row))
