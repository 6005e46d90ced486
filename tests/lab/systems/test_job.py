"""Measured jobs run, tell what they should, and a failing one says why and leaves nothing."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pslite_ext.launch.output import LineCutter
from scripts.lab.bed.bed import LoopbackBed
from scripts.lab.bed.namespaces import start_time
from scripts.lab.benches.case import Case, Figure, Setting
from scripts.lab.benches.limits import LOOPBACK
from scripts.lab.runner import Session, measure
from scripts.lab.systems.job import JobFailed, MeasuredJob, Outcome, Process, host_names, run_job
from scripts.lab.systems.system import BASIC, System, system
from scripts.lab.systems.watch import Watch
from scripts.lab.workloads.job_config import Config
from scripts.lab.workloads.measurement import MARK

pytest.importorskip("mxnet")
ZMQ = system("zmq", None)


def run(config: Config) -> Outcome:
    with LoopbackBed(host_names(2, 1)) as bed:
        return run_job(bed, ZMQ, config, timeout_s=100)


def test_a_flood_counts_bytes_and_urgent_tensors() -> None:
    tensors = {"count": 3, "bytes": 40_000, "urgent_bytes": 4_000}
    outcome = run(Config("flood", tensors, rounds=40, urgent=5, urgent_every_s=0.001))
    assert [r["flood_bytes"] for r in outcome.results] == [40 * 3 * 40_000] * 2
    pushes = {len(r["urgent_s"]) for r in outcome.results}
    assert len(pushes) == 1  # all workers stopped after the same one
    assert 1 <= pushes.pop() <= 5
    assert outcome.seconds > 0
    assert len(outcome.worker_cpu_s()) == 2
    assert len(outcome.cpu_s("server")) == 1
    assert outcome.peak_kb("worker") > 10_000


def test_training_s_sums_are_checked_and_its_iterations_timed() -> None:
    outcome = run(Config("train", {"model": "lenet5", "compute_s": 0.02}, rounds=3))
    for result in outcome.results:
        assert len(result["times_s"]) == 3
        assert min(result["times_s"]) > 0


def test_rounds_report_their_progress() -> None:
    heard: list[str] = []

    def tell(process: Process, event: dict[str, Any]) -> None:
        heard.append(f"{process.host} {event['event']}")

    config = Config("rounds", {"count": 2, "bytes": 400}, rounds=4, reports=[2, 4])
    with LoopbackBed(host_names(1, 1)) as bed:
        outcome = run_job(bed, ZMQ, config, timeout_s=100, tell=tell)
    assert "worker0 progress" in heard
    assert set(outcome.samples) >= {"begin", "end", "progress 2", "progress 4"}
    assert outcome.samples["progress 4"].memory_kb["server0"]["now"] > 10_000


def test_a_failing_program_is_reported_with_its_last_lines() -> None:
    code = (
        "import os, time; print('sad')\nif os.environ['DMLC_ROLE'] == 'worker': raise SystemExit(3)"
    )
    code += "\ntime.sleep(60)"
    with LoopbackBed(host_names(1, 1)) as bed:
        job = MeasuredJob(bed, ZMQ, Config("idle", {}), program=[sys.executable, "-c", code])
        with pytest.raises(JobFailed, match="(?s)worker0 ended.*exit code 3.*sad"):
            job.follow(30)


def test_a_job_that_does_not_end_is_ended() -> None:
    with LoopbackBed(host_names(1, 1)) as bed:
        program = [sys.executable, "-c", "import time; time.sleep(60)"]
        job = MeasuredJob(bed, ZMQ, Config("idle", {}), program=program)
        with pytest.raises(JobFailed, match="not done in 1 s"):
            job.follow(1)
        assert all(p.child.poll() is not None for p in job._processes)


def test_a_failing_system_does_not_end_the_run(tmp_path: Any) -> None:
    broken = System("broken", "/nonexistent/python")
    config = Config("idle", {"count": 1, "bytes": 4})
    results = Session(tmp_path / "results.json", {})
    case = Case("idle", "x", broken, LOOPBACK, config, lambda _: {"n": Figure(1.0, "")}, 1)
    assert measure(case, results).startswith("failed")
    assert results.failures[0].system == "broken"


def test_every_system_has_its_environment() -> None:
    for name in (*BASIC, "stock-device"):
        made = system(name, "/stock/python")
        assert made.name == name
        assert (made.python == "/stock/python") == name.startswith("stock")
    assert system("mercury-wfbp", None).env["MERCURY_POLICY"] == "wfbp"
    prophet = system("mercury-prophet", None)
    assert prophet.warmup > int(prophet.env["MERCURY_PROPHET_PROFILE_STEPS"])
    with pytest.raises(ValueError, match="no system 'mercury-magic'"):
        system("mercury-magic", None)
    with pytest.raises(ValueError, match="stock wheel"):
        system("stock", None)


def test_ctrl_c_ends_the_run_and_leaves_earlier_results(tmp_path: Path) -> None:
    out = tmp_path / "results.json"
    out.write_text("earlier")
    runner = [sys.executable, "-m", "scripts.lab.runner", "--systems", "zmq", "--only", "idle"]
    run = subprocess.Popen(
        [*runner, "--out", str(out)],
        stdout=subprocess.PIPE,
        text=True,
        # A shell's background jobs ignore SIGINT, and so would what they start.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert run.stdout is not None
    assert run.stdout.readline().startswith("[1 of 1")
    while not (workers := children_of(run.pid)):
        assert run.poll() is None
    run.send_signal(signal.SIGINT)
    assert "interrupted" in run.communicate(timeout=100)[0]
    assert run.returncode == 130
    assert out.read_text() == "earlier"  # for nothing was measured
    assert [pid for pid in workers if start_time(pid) is not None] == []


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_servers_can_live_beside_the_workers() -> None:
    config = Config("rounds", {"count": 2, "bytes": 400}, rounds=2)
    setting = Setting(2, 2, beside=True)
    with LoopbackBed(host_names(2, 2, beside=True)) as bed:
        assert bed.hosts == ("scheduler", "worker0", "worker1")
        watch = Watch(bed)
        job = MeasuredJob(bed, ZMQ, config, watch=watch, at=setting.places())
        homes = {p.host: p.at for p in job._processes}
        outcome = job.follow(100)
    assert homes["server1"] == "worker1"
    assert homes["scheduler"] == "scheduler"
    assert len(outcome.cpu_s("server")) == 2
    assert outcome.links is not None
    assert set(outcome.links.change) == {"worker0", "worker1"}


def test_what_a_process_says_may_be_longer_than_a_line_that_the_launcher_takes() -> None:
    process = Process("worker", "worker0")
    times = [0.123456789] * 30_000
    said = MARK + json.dumps({"event": "result", "times_s": times})
    cutter = LineCutter()
    pieces = [
        line
        for at in range(0, len(said) + 1, 50_000)
        for line in cutter.take(f"{said}\n"[at : at + 50_000].encode())
    ]
    assert len(pieces) > 2
    heard = [event for event in map(process.hear, pieces) if event is not None]
    assert heard == [{"event": "result", "times_s": times}]
    assert process.hear(f"{MARK}{{'half of a li") is None  # two have written at once
    assert process.hear("not for the lab") is None
    assert list(process.lines) == [f"{MARK}{{'half of a li", "not for the lab"]
