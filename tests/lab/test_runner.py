"""The bench's command line."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from scripts.lab.bed.bed import LoopbackBed
from scripts.lab.bed.namespaces import LabError
from scripts.lab.benches.case import Case, Figure, Figures
from scripts.lab.benches.limits import LOOPBACK
from scripts.lab.runner import Session, measure
from scripts.lab.systems.system import system
from scripts.lab.workloads.job_config import Config
from tests.cluster import ROOT, clean_environment


def test_a_reader_who_leaves_early_sees_no_traceback() -> None:
    runner = subprocess.Popen(
        [sys.executable, "-m", "scripts.lab.runner", "--list", "--only", "iteration"],
        cwd=ROOT,
        env=clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert runner.stdout is not None
    assert runner.stderr is not None
    runner.stdout.close()
    assert (runner.stderr.read(), runner.wait(60)) == ("", 141)


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
