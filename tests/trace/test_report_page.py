"""The report: whole, self-contained, and shown by a real browser, wide and narrow."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.trace.browser import Page
from tests.trace.synthetic_runs import run_of
from tracer.analysis import NAMES
from tracer.check import check_run
from tracer.clocks import aligned
from tracer.format.record import Note
from tracer.report.page import write_report
from tracer.synthetic import Plan

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
pytestmark = pytest.mark.xdist_group("report")  # drawn once, not by every process
ROOT = Path(__file__).resolve().parents[2]
PLAN = Plan(workers=2, servers=2, iterations=12, jitter_us=1500, split_bytes=1_000_000)
SECTIONS = ("check", "timeline", *NAMES, "clocks")


HOSTILE = "<script>x</script> $a_b$"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a run with a name that tries to be more than a name, as if under Prophet."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    run = run_of(PLAN)
    for trace in run.traces:
        trace.notes = [
            type(note)(note.before, note.text.replace("conv0_weight", HOSTILE))
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
    assert "<script" not in page
    fetched = re.findall(r'(?:src|href|xlink:href)="([^"#][^"]*)"|url\(([^#][^)]*)\)', page)
    assert fetched == []
    assert "@import" not in page
    assert len(page) < 2_000_000


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


LAID_OUT = """
document.readyState == 'complete' && document.getElementById('clocks') && [
  document.documentElement.scrollWidth, innerWidth,
  [...document.querySelectorAll('figure svg')]
    .filter(s => s.getBoundingClientRect().width > 100).length]
"""


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
    assert picture.stat().st_size > 50_000
    assert inner == width
    assert wide <= inner
    assert pictures == 19
    assert {*SECTIONS} <= {*ids}
