"""docs/papers.md follows from what was measured and from the model; nothing on it is typed."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.lab.report.markdown_table import tables
from scripts.papers import page, plots
from scripts.papers.item import HEADS
from scripts.papers.measured import DOCS, Measured
from scripts.papers.plots import Plots
from scripts.papers.quantity import NOT_MEASURED, Quantity, between, least, most

COMMITTED = (DOCS / "papers.md").read_text()


@pytest.fixture(scope="module", autouse=True)
def undrawn() -> Iterator[None]:
    """Pictures take seconds, and are not looked at here."""
    with pytest.MonkeyPatch.context() as patch:
        for chart in ("bar_chart", "line_chart"):
            patch.setattr(plots, chart, lambda *_, **__: "")
        yield


def made(docs: Path, to: Path) -> str:
    m = Measured(docs)
    return page.text(page.papers(m, Plots(to, m)))


@pytest.fixture(scope="module")
def again(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    to = tmp_path_factory.mktemp("papers")
    return made(DOCS, to), to


def test_every_figure_is_recomputed(again: tuple[str, Path]) -> None:
    assert again[0] == COMMITTED, "run python -m scripts.papers.page"


def test_its_pictures_are_those_that_are_there(again: tuple[str, Path]) -> None:
    shown = set(re.findall(r"\]\(papers/(\w+\.svg)\)", COMMITTED))
    assert shown == {file.name for file in (DOCS / "papers").glob("*.svg")}
    assert shown == {file.name for file in (again[1] / "papers").glob("*.svg")}


def test_no_row_is_empty() -> None:
    rows = [
        row
        for table in tables(COMMITTED)
        if table.heads[1:] == list(HEADS[1:])
        for row in table.rows
    ]
    assert len(rows) > 90
    for row in rows:
        assert len(row) == len(HEADS), row
        name, paper, here, *_, source = row
        assert all(cell not in ("", "-") for cell in (name, paper, here, source)), row
    assert NOT_MEASURED not in COMMITTED


def test_the_first_screen_has_twelve_lines() -> None:
    first = COMMITTED.partition("Each figure")[0]
    lines = re.findall(r"^- \*\*(\w+)\*\* (holds|does not|is better)", first, re.MULTILINE)
    papers = ("Mercury", "Prophet", "MLfabric", "SketchDLC")
    assert lines == [(p, said) for p in papers for said in ("holds", "does not", "is better")]


def test_another_result_makes_another_page(tmp_path: Path) -> None:
    """So a figure that was changed by hand is found: the page would not come out as it is."""
    docs = tmp_path / "docs"
    for part in ("benchmarks", "papers"):
        shutil.copytree(DOCS / part, docs / part)
    shutil.copy(DOCS / "fabric-plan.md", docs)
    results = docs / "benchmarks" / "results" / "prophet_table2.json"
    content = json.loads(results.read_text())
    row = next(r for r in content["rows"] if r["metric"] == "samples a second and worker")
    row["values"] = [2 * value for value in row["values"]]
    results.write_text(json.dumps(content))
    assert made(docs, tmp_path) != COMMITTED


def test_what_was_not_measured_says_so() -> None:
    nothing = Quantity()
    assert str(nothing) == str(nothing.over(Quantity((1.0,)))) == NOT_MEASURED
    assert between([nothing]) == str(least([])) == NOT_MEASURED


def test_quotients_are_of_repeats() -> None:
    slow, fast = Quantity((2.0, 4.0, 9.0), "s"), Quantity((1.0, 1.0, 3.0), "s")
    assert slow.over(fast).values == (2.0, 4.0, 3.0)
    assert slow.over(Quantity((2.0,))).values == (2.0,)
    assert str(slow) == "4 ± 3.5 s"
    assert between([slow, fast], "s") == "1 to 4 s"
    assert most([slow, fast]) is slow


def test_a_figure_that_could_be_another_is_refused() -> None:
    with pytest.raises(ValueError, match="figures"):
        Measured().one("fabric", "C1", "fabric A-30", "time")


def test_a_gpu_computes_once_at_a_time() -> None:
    layers = [(0.25, 0.3, 0.3, 0.355), (0.2, 0.4, 0.35, 0.4)]  # ready, back, forward, done
    shares = dict(plots.use_of_gpu(layers, bin_s=0.1))
    assert list(shares.values()) == pytest.approx([1, 1, 0.5, 1])
    assert list(shares) == pytest.approx([0.05, 0.15, 0.25, 0.35])
