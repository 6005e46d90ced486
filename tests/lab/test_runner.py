"""The bench's command line."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from scripts.lab import runner
from scripts.lab.bed.bed import LoopbackBed
from scripts.lab.bed.disturbance import slow_link
from scripts.lab.bed.namespaces import LabError
from scripts.lab.benches import catalogue
from scripts.lab.benches.case import Case, Figure, Figures, Row, Setting
from scripts.lab.benches.limits import LOOPBACK
from scripts.lab.runner import Session, measure
from scripts.lab.systems.job import JobFailed
from scripts.lab.systems.system import MERCURY, system
from scripts.lab.workloads.job_config import Config
from tests.cluster import ROOT, clean_environment


def test_a_reader_who_leaves_early_sees_no_traceback() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "scripts.lab.runner", "--list", "--only", "iteration"],
        cwd=ROOT,
        env=clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert (process.stderr.read(), process.wait(60)) == ("", 141)


def test_a_program_whose_job_fails_keeps_what_it_has_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def measure(_systems: object, _length: str, _repeats: int) -> Iterator[Row]:
        yield Row("captures", "what", "zmq", "time", "ms", "2 workers", [1.0])
        raise JobFailed("worker0 ended")

    monkeypatch.setitem(catalogue.PROGRAMS, "captures", measure)
    session = runner.Session(tmp_path / "results.json", {})
    runner.run_programs(["captures"], [], session)
    assert [row.values for row in session.rows] == [[1.0]]
    assert session.failed
    assert "failed: captures: worker0 ended" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--only scaling --scale 0", "argument --scale: '0' is no number above 0"),
        ("--only scaling --rate nan", "argument --rate: 'nan' is no number above 0"),
        ("--only scaling --repeats 0", "argument --repeats: '0' is no whole number above 0"),
        ("--only torch --slow worker0=0.5", "--slow is for scaling, not for torch"),
        ("--only scaling idle --colocate", "wire, not for idle"),
        ("--only scaling --nodes 2x2 --slow worker9=0.5", "no case has a host 'worker9'"),
        ("--only sum_kernel --match nope", "no case is like that"),
        ("--only idle --out /dev/null/x.json", "/dev/null/x.json cannot be written: "),
        ("--only idle --out /", "/ cannot be written: it is a folder"),
    ],
)
def test_what_cannot_be_measured_is_said_at_once(
    words: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(words, monkeypatch) == 2
    assert said in capsys.readouterr().err.splitlines()[-1]


def _run(words: str, monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.setattr(sys, "argv", ["lab", *words.split(), "--systems", "zmq", MERCURY])
    monkeypatch.setattr("signal.signal", lambda *_: None)  # this process stays as it is
    for measures in ("run_programs", "measure_all"):
        monkeypatch.setattr(runner, measures, lambda *_: pytest.fail("it measures"))
    try:
        return runner.main()
    except SystemExit as ended:
        return ended.code


def test_programs_are_listed_and_chosen_as_cases_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run("--only tuning joining --match tuning --list", monkeypatch) == 0
    assert capsys.readouterr().out == "   ? s  tuning: a program of its own\n"


def test_where_links_cannot_be_limited_nothing_is_compared_with_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(runner, "privilege_missing", lambda: "it needs root")
    session = Session(tmp_path / "results.json", {})
    config = Config("train", {})
    case = Case("scaling", "x", system("zmq", None), Setting(), config, lambda _: {}, 1)
    names = ("time", "ratio to floor", "floor", "goodput each way / link", "predicted time")
    session.add(case, {name: Figure(1.0, "s") for name in names})
    assert [row.metric for row in session.rows] == ["time"]
    session.add(replace(case, setting=LOOPBACK), {"floor": Figure(1.0, "s")})
    assert len(session.rows) == 2
    slow = replace(case, disturbance=slow_link("worker0", 1e6))
    assert measure(slow, session) == "skipped: its links are to change, but it needs root"
    assert not session.failed


def test_a_case_may_run_jobs_of_its_own(tmp_path: Path) -> None:
    def run(bed: LoopbackBed) -> dict[str, Figures]:
        assert "worker1" in bed.hosts
        return {what: {"time": Figure(n, "s")} for n, what in enumerate(("a beside b", "b"))}

    def broken(bed: LoopbackBed) -> dict[str, Figures]:
        raise LabError("one has not started")

    ours = system("zmq", None)
    case = Case("jobs", "a and b", ours, LOOPBACK, Config("train", {}), lambda _: {}, 1, run=run)
    session = Session(tmp_path / "results.json", {})
    for _ in range(2):
        measure(case, session)
    assert {row.what: row.values for row in session.rows} == {"a beside b": [0, 0], "b": [1, 1]}
    assert measure(replace(case, run=broken), session) == "failed: one has not started"
    assert [failure.what for failure in session.failures] == ["a and b"]
