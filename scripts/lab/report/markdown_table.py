"""Tables of the benchmark pages: written, and read again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple


class Table(NamedTuple):
    title: str  # the line above it
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]

    def lines(self) -> list[str]:
        """As they stand on a page; none if it has no rows."""
        cells = [self.heads, ["---"] * len(self.heads), *self.rows]
        written = [f"| {' | '.join(row)} |" for row in cells]
        written[1] = written[1].replace(" ", "")
        return ["", self.title, "", *written] if self.rows else []


def tables(page: str) -> list[Table]:
    """All of a page; their heads have lost their units."""
    found = []
    for title, block in re.findall(r"^(.*)\n\n((?:\|.*\n?)+)", page, re.MULTILINE):
        head, _, *rows = (
            [cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()
        )
        heads = [re.sub(r" \[[^]]*\]$", "", cell) for cell in head]
        found.append(Table(title, heads, rows))
    return found
