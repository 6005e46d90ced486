"""docs/papers.md follows from what was measured and from the model; nothing on it is typed."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from scripts.lab import runner
from scripts.lab.benches.case import Row
from scripts.lab.benches.catalogue import PROGRAMS
from scripts.lab.report.markdown_table import tables
from scripts.lab.systems.system import System, available
from scripts.papers import mercury, page, plots
from scripts.papers.item import HEADS
from scripts.papers.measured import DOCS, Asked, Measured
from scripts.papers.plots import Plots
from scripts.papers.quantity import NOT_MEASURED, Quantity, between, least, most
from scripts.papers.run import FULL

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


class Again(NamedTuple):
    text: str
    folder: Path
    used: list[Row]


@pytest.fixture(scope="module")
def again(tmp_path_factory: pytest.TempPathFactory) -> Again:
    to = tmp_path_factory.mktemp("papers")
    used: list[Row] = []
    rows_of = Measured.rows_of

    def noted(m: Measured, asked: Asked) -> list[Row]:
        used.extend(found := rows_of(m, asked))
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Measured, "rows_of", noted)
        return Again(made(DOCS, to), to, used)


def test_every_figure_is_recomputed(again: Again) -> None:
    assert again.text == COMMITTED, "run python -m scripts.papers.page"


def test_make_papers_measures_each_figure_again(
    again: Again, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def everything(names: Sequence[str], _stock: object) -> tuple[list[System], dict[str, str]]:
        systems, missing = available(names, "/stock/python")
        return [*systems, *(System(name, "python", servers=False) for name in missing)], {}

    monkeypatch.setattr(runner, "available", everything)
    monkeypatch.setattr("signal.signal", lambda *_: None)  # this process stays as it is
    for step in (step for of in FULL.values() for step in of):
        monkeypatch.setattr(sys, "argv", ["lab", *step.arguments, "--list"])
        assert runner.main() == 0
    lines = {line.partition(" s  ")[2] for line in capsys.readouterr().out.splitlines()}
    of_many = {b for b in ("jobs", *PROGRAMS) if any(x.startswith(f"{b}:") for x in lines)}
    shown = {f"{r.bench}: {r.what}; {r.setting}; {r.system}" for r in again.used}
    assert len(shown) > 300
    assert {x for x in shown - lines if x.partition(":")[0] not in of_many} == set()


def test_its_pictures_are_those_that_are_there(again: Again) -> None:
    shown = set(re.findall(r"\]\(papers/(\w+\.svg)\)", COMMITTED))
    assert shown == {file.name for file in (DOCS / "papers").glob("*.svg")}
    assert shown == {file.name for file in (again.folder / "papers").glob("*.svg")}


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
    for row in content["rows"]:
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
    apart = slow.over(replace(fast, run="another")).bare()
    assert (str(apart), str(apart.times(0.5))) == ("4 (not by turns)", "2 (not by turns)")
    assert between([fast.over(fast), apart]) == "1 to 4 (not all by turns)"
    assert str(slow) == "4 ± 3.5 s"
    assert between([slow, fast], "s") == "1 to 4 s"
    assert most([slow, fast]) is slow


def test_models_that_were_not_measured_are_not_counted(tmp_path: Path) -> None:
    kept = tmp_path / "benchmarks" / "results"
    kept.mkdir(parents=True)
    shutil.copy(DOCS / "benchmarks" / "results" / "mercury_bert.json", kept)
    first, *_ = mercury.paper(Measured(tmp_path), []).first
    assert first.startswith("holds: 1 models are ")


def test_a_figure_that_could_be_another_is_refused() -> None:
    with pytest.raises(ValueError, match="figures"):
        Measured().one("fabric", "C1", "fabric A-30", "time")


def test_a_gpu_computes_once_at_a_time() -> None:
    layers = [(0.25, 0.3, 0.3, 0.355), (0.2, 0.4, 0.35, 0.4)]  # ready, back, forward, done
    shares = dict(plots.use_of_gpu(layers, bin_s=0.1))
    assert list(shares.values()) == pytest.approx([1, 1, 0.5, 1])
    assert list(shares) == pytest.approx([0.05, 0.15, 0.25, 0.35])
