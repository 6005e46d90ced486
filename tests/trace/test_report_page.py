"""The report: whole, self-contained, and shown by a real browser, wide and narrow."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.trace.browser import Page
from tests.trace.synthetic_runs import run_of
from tracer.analysis import NAMES
from tracer.analysis.phases import phases
from tracer.check import check_run
from tracer.clocks import aligned
from tracer.format.record import Note
from tracer.report import overview
from tracer.report.page import write_report
from tracer.synthetic import Plan

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
pytestmark = pytest.mark.xdist_group("report")  # drawn once, not by every process
ROOT = Path(__file__).resolve().parents[2]
PLAN = Plan(workers=2, servers=2, iterations=12, jitter_us=1500, split_bytes=1_000_000)
SECTIONS = ("advice", "check", "time", "timeline", *NAMES, "clocks")


HOSTILE = "<script>x</script> $a_b$"
LONG = "x" * 5000


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a run with names that try to be more than names, as if under Prophet."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    run = run_of(PLAN)
    for trace in run.traces:
        trace.notes = [
            type(note)(
                note.before,
                note.text.replace("conv0_weight", HOSTILE).replace("conv1_weight", LONG),
            )
            for note in trace.notes
        ]
    for trace in run.workers:
        trace.notes += [
            Note(0, f"prophet {n} blocks 3 bytes 4000 held_us 5 rate 6 wait_first_us {700 + n}")
            for n in range(PLAN.iterations - 1)
        ]
    table, alignment = aligned(run)
    write_report(run, table, alignment, check_run(run), path)
    return path


def test_no_section_is_missing_and_nothing_is_fetched(report: Path) -> None:
    page = report.read_text()
    for name in SECTIONS:
        assert f'id="{name}"' in page, name
    said = re.search(r'<div id="advice"><p>(.*?)</p><p>(.*?)</p><p>(.*?)</p></div>', page)
    assert said is not None
    assert said[1].startswith("An iteration of ")
    assert page.index('id="advice"') < page.index('class="cards"') < page.index('id="check"')
    assert "<script" not in page
    fetched = re.findall(r'(?:src|href|xlink:href)="([^"#][^"]*)"|url\(([^#][^)]*)\)', page)
    assert fetched == []
    assert "@import" not in page
    assert len(page) < 2_000_000


def test_cards_and_shares_are_of_the_same_iterations() -> None:
    """An iteration is computation, then waiting: for every worker's, and for all time together."""
    table, _ = aligned(run_of(replace(PLAN, iterations=1)))
    found = phases(table)
    text = overview.cards(table)
    shown = dict(re.findall(r"<span>(\w+)</span><b>([\d.]+) ms</b>", text))
    rows = {name: np.median(np.asarray(found[f"{name}_us"])) for name in ("whole", "computation")}
    assert float(shown["iteration"]) == pytest.approx(rows["whole"] / 1e3, rel=0.01)
    assert float(shown["computation"]) == pytest.approx(rows["computation"] / 1e3, rel=0.01)
    waits = np.asarray(found["phase3_us"]) - np.asarray(found["phase2_us"])
    assert float(shown["waiting"]) == pytest.approx(np.median(waits) / 1e3, rel=0.01)
    assert "Medians over 2 workers; iterations whose beginning is known: 1." in text
    shares = overview.shares(table)
    assert shares["who"] == ["all workers", "worker 0", "worker 1"]
    for row in shares.rows():
        assert row["computing"] + row["both"] + row["waiting"] == pytest.approx(1)


def test_pictures_say_what_they_show(report: Path) -> None:
    """Lanes and dots have names, and colours a legend."""
    page = report.read_text()
    for kind in ("wide", "narrow"):
        timeline = svg_of(page, f"timeline-iteration{'-narrow' if kind == 'narrow' else ''}")
        assert timeline.count("dense0_weight") == 4  # a lane of each node's
        steps = svg_of(page, f"steps-starts{'-narrow' if kind == 'narrow' else ''}")
        assert "step 0: gradient" in steps
        assert "dense1_bias" in steps  # the first dot
    shares = svg_of(page, "time-shares")
    for words in ("computation before the first push", "waiting for communication", "worker 1"):
        assert words in shares


def svg_of(page: str, name: str) -> str:
    (found,) = (s for s in re.findall(r"<svg.*?</svg>", page, re.DOTALL) if f'"{name}-fig' in s)
    return str(found)


def test_colours_of_the_page_are_the_page_s(report: Path) -> None:
    drawn = "".join(re.findall(r"<svg.*?</svg>", report.read_text(), re.DOTALL))
    assert "var(--ink)" in drawn
    assert "#202124" not in drawn
    assert "#ffffff" not in drawn


def test_pictures_do_not_share_ids(report: Path) -> None:
    page = report.read_text()
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    for target in re.findall(r'(?:xlink:href="#|url\(#)([^")]+)', page):
        assert target in set(ids), target


def test_a_hostile_name_stays_text(report: Path) -> None:
    page = report.read_text()
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_a_long_name_leaves_pictures_their_room(report: Path) -> None:
    page = report.read_text()
    drawn = re.findall(r"<text [^>]*>([^<]*)</text>", page)
    assert any("…xxx" in text for text in drawn)
    assert max(map(len, drawn)) < 80
    assert LONG in page  # in the tables


LAID_OUT = """
document.readyState == 'complete' && document.getElementById('clocks') && [
  document.documentElement.scrollWidth, innerWidth,
  [...document.querySelectorAll('figure svg')]
    .filter(s => s.getBoundingClientRect().width > 100).length]
"""


COLOURS = """
[getComputedStyle(document.body).backgroundColor,
 [...new Set([...document.querySelectorAll('h2, td, figcaption, .wide g[id*="axis"] text')]
   .map(e => e.tagName == 'text' ? getComputedStyle(e).fill : getComputedStyle(e).color))]]
"""


def brightness(colour: str) -> float:
    """Of `rgb(22, 24, 27)`."""
    return sum(map(float, re.findall(r"[\d.]+", colour)[:3])) / 3


@pytest.mark.parametrize(("name", "width"), [("wide", 1280), ("narrow", 500)])
def test_a_browser_shows_it(report: Path, name: str, width: int, tmp_path: Path) -> None:
    """Also that nothing sticks out to the side."""
    picture = ROOT / "build" / f"trace-report-{name}.png"
    picture.parent.mkdir(exist_ok=True)
    picture.unlink(missing_ok=True)
    size = [f"--window-size={width},12000"]
    with Page(report.as_uri(), tmp_path / "profile", size) as page:
        wide, inner, pictures = page.value_once_there(LAID_OUT, within_s=60)
        ids = page.value("[...document.querySelectorAll('[id]')].map(element => element.id)")
        page.picture(picture)
        if name == "wide":
            page.dark()
            page.picture(picture.with_name("trace-report-dark.png"))
            paper, inks = page.value(COLOURS)
    assert name != "wide" or (brightness(paper) < 60 and min(map(brightness, inks)) > 120)
    assert picture.stat().st_size > 50_000
    assert inner == width
    assert wide <= inner
    assert pictures == 20
    assert {*SECTIONS} <= {*ids}
