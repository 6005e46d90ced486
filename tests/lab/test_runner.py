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
from scripts.lab.bed.namespaces import LabError
from scripts.lab.benches import catalogue
from scripts.lab.benches.case import Case, Figure, Figures, Row
from scripts.lab.benches.limits import LOOPBACK
from scripts.lab.runner import Session, measure
from scripts.lab.systems.job import JobFailed
from scripts.lab.systems.system import system
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
