"""SketchDLC: every table and figure of its evaluation."""

from __future__ import annotations

from scripts.papers.item import Item, Paper
from scripts.papers.measured import Measured


def items(m: Measured) -> list[Item]:
    return []


def paper(m: Measured, pictures: list[tuple[str, str]]) -> Paper:
    return Paper("SketchDLC", "", "", [], items(m), pictures)
