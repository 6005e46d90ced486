"""The tables of MLfabric's races: who was faster than the ring, and who did not arrive."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from scripts.lab.benches.case import Row
from scripts.lab.report import fabric_tables
from scripts.lab.report.fabric_tables import RIVALS, by_cell, by_race, foretold, sampling
from scripts.lab.report.results import Results
from scripts.lab.systems.system import GLOO
from tests.cluster import ROOT

BENCHMARKS = ROOT / "docs" / "benchmarks"


def _row(what: str, system: str, metric: str, *values: float) -> Row:
    return Row("fabric", what, system, metric, "", "30 workers", list(values))


ROWS = [
    _row("C2 N1, to 0.8", GLOO, "time", 9.0),
    _row("C1 N1, to 0.8", GLOO, "time", 8.0),
    _row("C1 N1, to 0.8", "fabric A-30", "time", 4.0),
    _row("C1 N1, to 0.8", "fabric A-60", "ran for", 45.0),
    _row("C1 N1, to 0.93", GLOO, "time", 20.0, 22.0, 24.0),
    _row("C1 N2, to 0.8, told 2 s late", "fabric A-30", "time", 5.0),
    _row("C1 N2, to 0.8, told 2 s late", "fabric A-30", "dropped", 12.5),
]


@pytest.fixture
def simulated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fabric_tables, "SHARINGS", 1)


def test_cells_stand_beside_the_ring() -> None:
    text = "\n".join(by_cell(ROWS))
    assert "| C1 N1 | 8 |  |  | 4 (2.00) | > 45 |" in text
    assert "| C2 N1 | 9 |  |  |  |  |" in text
    assert "| C1 N1 | 22 ± 2 |" in text
    assert text.index("80 %") < text.index("| C2 N1") < text.index("93 %")
    assert "N2" not in text  # which is no cell of the table
    assert text.count(" | ".join(RIVALS)) == 2


def test_quotients_are_those_of_repeats_that_took_turns() -> None:
    what = "C2 N1, to 0.8"
    rows = [_row(what, GLOO, "time", 4.0, 6.0, 9.0), _row(what, "tree", "time", 8.0, 3.0, 3.0)]
    assert "| 6 ± 2.5 | 3 ± 2.5 (2.00) |" in "\n".join(by_cell(rows))
    rows[1] = replace(rows[1], values=[8.0, 3.0, 1.0], run="another")
    assert "| 6 ± 2.5 | 3 ± 3.5 (2.00, not by turns) |" in "\n".join(by_cell(rows))


def test_who_did_not_always_arrive_is_not_as_fast_as_when_it_did() -> None:
    what = "C2 N3, to 0.8"
    ring = _row(what, GLOO, "time", 10.0, 10.0, 10.0)
    rows = [ring, _row(what, "fabric A-30", "time", 20.0, 30.0)]
    rows.append(_row(what, "fabric A-30", "arrived", 1.0, 0.0, 1.0))
    rows.append(_row(what, "fabric A-60", "time", 20.0))
    rows.append(_row(what, "fabric A-60", "arrived", 0.0, 0.0, 1.0))
    rows.append(_row(what, "fabric A-60", "ran for", 45.0, 45.0, 20.0))
    text = "\n".join(by_cell(rows))
    assert "| C2 N3 | 10 |  |  | 30, 2 of 3 (0.33) | > 45, 1 of 3 |" in text


@pytest.mark.usefixtures("simulated_once")
def test_what_was_foretold_stands_beside_what_was_measured() -> None:
    rows = [*ROWS, _row("C1 N1, to 0.8", GLOO, "gradients", 500.0)]
    rows.append(_row("C1 N3, to 0.8", "fabric A-30", "gradients", 90.0))  # did not arrive: in 45 s
    text = foretold(rows)
    assert foretold(ROWS) == []
    (first,) = [line for line in text if line.startswith("| C1 N1")]
    (third,) = [line for line in text if line.startswith("| C1 N3")]
    told, measured, ratio = re.findall(r"[\d.]+", first.split("|")[2])
    assert measured == "62.5"
    assert float(told) / 62.5 == pytest.approx(float(ratio), abs=0.01)
    assert " / 2 (" in third
    assert third.count("(") == 1


@pytest.mark.usefixtures("simulated_once")
def test_a_round_that_was_made_before_all_knew_that_it_was_over_does_not_count() -> None:
    what = "C2 N1, to 0.8"
    times = [_row(what, GLOO, "time", 6.0, 6.0), _row(what, "async", "time", 20.0, 20.0)]
    counts = ([300.0, 300.0], [300.0, 330.0])
    told = [
        foretold([*times, *(_row(what, name, "gradients", *made) for name in (GLOO, "async"))])
        for made in counts
    ]
    (plain,), (more,) = ([line for line in text if line.startswith("| C2 N1")] for text in told)
    assert plain.split("|")[2] == more.split("|")[2] != ""  # the ring's
    assert plain.split("|")[4] != more.split("|")[4]


def test_topics_have_a_table_of_their_own() -> None:
    what = "LDA, C1 N1, to -4.6"
    rows = [_row(what, "fabric A-30", m, v) for m, v in (("time", 20.0), ("gradients", 330.0))]
    assert sampling(ROWS) == []
    assert "| C1 N1, to -4.6 | fabric A-30 | 20 | 11 |  |  |  |  |" in sampling([*ROWS, *rows])
    assert len(by_race([*ROWS, *rows])) == len(by_race(ROWS))


def test_every_race_has_a_line() -> None:
    lines = by_race(ROWS)
    assert "Each race was run up to 3 times; 30 workers:" in lines
    (late,) = [line for line in lines if "told 2 s late" in line]
    assert late.startswith("| C1 N2, to 0.8, told 2 s late | fabric A-30 | 5 |")
    assert "| 12.5 |" in late
    assert sum(line.startswith("| C") for line in lines) == 6


def test_what_the_page_foretells_is_simulated_again() -> None:
    """Of one race; all of them take minutes."""
    race, systems = "C3 N1, to 0.8", (GLOO, "fabric A-30", "fabric S")
    results = Results((BENCHMARKS / "results").glob("fabric*.json"))
    rows = [row for row in results.rows if row.what == race and row.system in systems]
    (made,) = (line for line in foretold(rows) if line.startswith(f"| {race} |"))
    page = (BENCHMARKS / "fabric.md").read_text().partition("Gradients a second until")[2]
    shown = next(line for line in page.splitlines() if line.startswith(f"| {race} |"))
    again = [
        (cell, there) for cell, there in zip(made.split("|"), shown.split("|")) if cell.strip()
    ]
    assert len(again) == 1 + len(systems)
    assert all(cell == there for cell, there in again), (made, shown)
