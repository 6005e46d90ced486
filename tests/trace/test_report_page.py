"""The report: whole, self-contained, and shown by a real browser, wide and narrow."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from browser import OPTIONS, browser
from trace_runs import run_of

from tracer.analysis import NAMES
from tracer.check import check_run
from tracer.clocks import aligned
from tracer.report.page import write_report
from tracer.run import Run
from tracer.synthetic import Plan

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
ROOT = Path(__file__).resolve().parents[2]
PLAN = Plan(workers=2, servers=2, iterations=12, jitter_us=1500, split_bytes=1_000_000)
SECTIONS = ("check", "timeline", *NAMES, "clocks")


def write(run: Run, path: Path) -> str:
    table, alignment = aligned(run)
    write_report(run, table, alignment, check_run(run), path)
    return path.read_text()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    write(run_of(PLAN), path)
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


def test_a_hostile_name_stays_text(tmp_path: Path) -> None:
    run = run_of(Plan(iterations=3))
    for trace in run.traces:
        trace.notes = [
            type(note)(note.before, note.text.replace("conv0_weight", "<script>x</script> $a_b$"))
            for note in trace.notes
        ]
    page = write(run, tmp_path / "report.html")
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def run_browser(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [browser(), *OPTIONS, "--enable-logging=stderr", "--v=0", *arguments],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip


@pytest.mark.parametrize(("name", "width"), [("wide", 1280), ("narrow", 500)])
def test_a_browser_shows_it(report: Path, name: str, width: int, tmp_path: Path) -> None:
    """Also that nothing sticks out to the side, which a script of the test's own measures."""
    picture = ROOT / "build" / f"trace-report-{name}.png"
    picture.parent.mkdir(exist_ok=True)
    picture.unlink(missing_ok=True)
    shot = run_browser(f"--window-size={width},12000", f"--screenshot={picture}", report.as_uri())
    assert picture.stat().st_size > 50_000, shot.stderr
    measured = tmp_path / "measured.html"
    script = (
        "<script>document.title = document.documentElement.scrollWidth + ' ' + innerWidth + ' ' +"
        " [...document.querySelectorAll('figure svg')].filter(s => s.getBoundingClientRect().width"
        " > 100).length</script>"
    )
    measured.write_text(report.read_text().replace("</body>", script + "</body>"))
    dump = run_browser(f"--window-size={width},2000", "--dump-dom", measured.as_uri())
    assert "CONSOLE" not in dump.stderr, dump.stderr
    title = re.search(r"<title>(\d+) (\d+) (\d+)</title>", dump.stdout)
    assert title, dump.stderr
    wide, inner, pictures = map(int, title.groups())
    assert wide <= inner
    assert pictures == 12
    for section in SECTIONS:
        assert f'id="{section}"' in dump.stdout
