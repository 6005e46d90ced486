"""`mercury trace live`: files that grow, what is said of them, and how it ends."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.cluster import ROOT, clean_environment, mercury
from tests.trace.synthetic_runs import run_of, two_hosts
from tracer.analysis import exposed, stragglers
from tracer.clocks import aligned
from tracer.errors import TraceError
from tracer.format.record import ROLES, Note, Trace
from tracer.format.writer import write_trace
from tracer.live import tail
from tracer.live.page import line, page
from tracer.live.watch import LinkFigures, Picture, Watch, WorkerFigures
from tracer.run import trace_paths
from tracer.synthetic import Plan, PlannedTensor, synthesize, write_run

PLAN = Plan(
    workers=3, servers=2, iterations=30, mode="mercury", jitter_us=900, slower_us=(0, 4000, 0),
    ahead_us=(0, 5_000_000, -700, 12),
)  # fmt: skip


def grown(source: Path, target: Path, cuts: int) -> Picture:
    """The last picture of files that were written in so many parts, cut anywhere."""
    watch = Watch(target)
    assert not watch.look()
    assert watch.picture().seen == 0
    target.mkdir()
    contents = {path.name: path.read_bytes() for path in trace_paths(source)}
    for part in range(1, cuts + 1):
        for number, (name, content) in enumerate(contents.items()):
            end = len(content) * part // cuts - (17 * number + part if part < cuts else 0)
            (target / name).write_bytes(content[: max(end, 0)])
        watch.look()
        last = watch.picture()
        assert part == cuts or not last.over
    assert not watch.look()
    return last


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("mode", ["zmq", "mercury"])
def test_a_growing_run_is_told_as_the_analysis_tells_it(
    mode: str, binary: bool, tmp_path: Path
) -> None:
    plan = Plan(**{**PLAN.__dict__, "mode": mode})
    write_run(plan, tmp_path / "run", binary)
    last = grown(tmp_path / "run", tmp_path / "growing", 40 if not binary else 7)
    assert (last.mode, last.training, last.seen, last.expected) == (mode, "synchronous", 5, 5)
    assert last.over
    assert last.step == plan.iterations - 1
    table, _ = aligned(run_of(plan))
    told = stragglers.per_worker(stragglers.last_ones(table), 3)
    waits = exposed.per_step(exposed.per_layer(table))
    for worker in last.workers:
        assert worker.last_share == pytest.approx(told["share"][worker.rank], abs=0.02)
        mine = waits["us"][(waits["worker"] == worker.rank) & (waits["iteration"] < last.step)]
        assert worker.waiting_ms == pytest.approx(float(np.median(mine)) / 1e3)
        assert worker.steps_per_s is not None
        assert worker.step_ms is not None
        assert worker.steps_per_s * worker.step_ms == pytest.approx(1000, rel=0.2)
    assert last.slowest is not None
    assert last.slowest.rank == 1
    assert {(one.worker, one.server) for one in last.links} == {
        (worker, server) for worker in range(3) for server in range(2)
    }
    gradients = sum(one.to_server for one in last.links)
    assert gradients == pytest.approx(sum(one.to_worker for one in last.links), rel=0.1)


def test_keys_that_are_pushed_less_often_are_no_old_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tracer.live.watch.RECENT_US", 50_000)
    tensors = PlannedTensor("critic", 1000), PlannedTensor("generator", 2000, every=4)
    write_run(Plan(iterations=60, tensors=tensors), tmp_path / "run")
    for worker in grown(tmp_path / "run", tmp_path / "growing", 20).workers:
        assert worker.step == 59
        assert worker.steps_per_s is not None
        assert worker.step_ms is not None
        assert worker.steps_per_s * worker.step_ms == pytest.approx(1000, rel=0.2)


@pytest.mark.parametrize("binary", [False, True])
def test_of_a_long_file_the_end_is_read(
    binary: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_run(PLAN, tmp_path, binary)
    whole = Watch(tmp_path)
    whole.look()
    monkeypatch.setattr(tail, "KEPT_BYTES", 30_000 if not binary else 16)
    late = Watch(tmp_path)
    late.look()
    assert late.picture().over
    if not binary:  # the example's binary files are one piece each, which is old as a whole
        assert late.picture().step == whole.picture().step
        assert len(late._nodes["trace_worker_0"].steps) < PLAN.iterations


@pytest.mark.parametrize(("old", "new"), [("\n", "\r\n"), ("length num_pp", "length  num_pp")])
def test_a_header_in_another_spacing(old: str, new: str, tmp_path: Path) -> None:
    write_run(PLAN, tmp_path / "run")
    for path in (tmp_path / "run").iterdir():
        path.write_bytes(path.read_bytes().replace(old.encode(), new.encode()))
    assert grown(tmp_path / "run", tmp_path / "growing", 20).step == PLAN.iterations - 1


def watched(folder: Path, traces: list[Trace]) -> Watch:
    for trace in traces:
        write_trace(trace, folder / (trace.path + ".txt"))
    watch = Watch(folder)
    watch.look()
    return watch


def test_who_is_slow_though_all_last_packets_come_together(tmp_path: Path) -> None:
    plan = Plan(
        mode="mercury", iterations=8, tensors=(PlannedTensor("big", 2_000_000),),
        window_bytes=100_000, slower_us=(0, 20_000),
    )  # fmt: skip
    slowest = watched(tmp_path, synthesize(plan)).picture().slowest
    assert slowest is not None
    assert (slowest.rank, slowest.behind_ms) == (1, 20)


def test_a_leader_is_not_called_slow_for_its_neighbour(tmp_path: Path) -> None:
    traces = two_hosts(slower_us=(0, 20_000))
    told = watched(tmp_path, traces).picture()
    assert told.slowest is not None
    assert told.slowest.rank == 1
    assert told.slowest.behind_ms == pytest.approx(20, abs=1)
    assert [worker.last_share for worker in told.workers] == [0, 1, 0, 0]


def test_a_job_goes_on_without_a_worker(tmp_path: Path) -> None:
    """It left in order, so that its file has an end; the others still train."""
    traces = synthesize(PLAN)
    for trace in traces:
        if trace.header.node == "worker 2":
            trace.records = trace.records.take(trace.iteration() < 10)
        else:
            trace.notes[-1] = Note(len(trace.records), "without worker 2: lost worker 2: it left")
    watch = watched(tmp_path, traces)
    told = watch.picture()
    assert told.step == PLAN.iterations - 1
    assert [worker.rank for worker in told.workers] == [0, 1]
    assert not told.over
    assert not watch.some_are_over
    assert line(told).endswith("without worker 2")


def told_of(folder: Path, change: Callable[[Trace], Trace]) -> Picture:
    """Of PLAN's files, the servers' so changed."""
    traces = [
        change(trace) if trace.path.startswith("trace_server_") else trace
        for trace in synthesize(PLAN)
    ]
    return watched(folder, traces).picture()


def test_who_is_slow_among_those_who_push_to_a_server(tmp_path: Path) -> None:
    """Of the workers of a host, only one pushes to other hosts' servers."""

    def without_worker_0(trace: Trace) -> Trace:
        away = trace.records.node // len(ROLES) != 0
        return replace(trace, records=trace.records.take(away))

    slowest = told_of(tmp_path, without_worker_0).slowest
    assert slowest is not None
    assert slowest.rank == 1


def test_who_was_slow_long_ago_is_not_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tracer.live.watch.RECENT_US", 1)

    def faster_in_the_end(trace: Trace) -> Trace:
        of_slow = (trace.records.node // len(ROLES) == 1) & (trace.iteration() >= 24)
        trace.records.time[of_slow] -= 10_000
        return trace

    told = told_of(tmp_path, faster_in_the_end)
    assert told.workers[1].last_share == 0
    assert sum(worker.last_share or 0 for worker in told.workers) == pytest.approx(1)


def test_steps_that_are_not_recorded(tmp_path: Path) -> None:
    """Of a window, or after a switch: that nothing comes is no stall then."""
    write_run(PLAN, tmp_path)
    for path in tmp_path.glob("trace_worker_*"):
        path.write_text(path.read_text().split("# end ")[0] + "# to step 30\n")
    watch = Watch(tmp_path)
    watch.look()
    assert watch.picture().off
    assert line(watch.picture(), 60).endswith("steps after 29 are not recorded for now")
    with open(tmp_path / "trace_worker_1.txt", "a") as file:
        file.write("# from step 60\n")
    watch.look()
    assert not watch.picture().off


def test_links_by_what_servers_saw(tmp_path: Path) -> None:
    """Where workers write on their own hosts."""
    write_run(PLAN, tmp_path)
    both = Watch(tmp_path)
    both.look()
    for path in tmp_path.glob("trace_worker_*"):
        path.unlink()
    alone = Watch(tmp_path)
    alone.look()
    assert alone.picture().seen == 2
    for one, other in zip(both.picture().links, alone.picture().links):
        assert (one.worker, one.server) == (other.worker, other.server)
        assert one.to_server == pytest.approx(other.to_server, rel=0.2)
        assert one.to_worker == pytest.approx(other.to_worker, rel=0.2)


def test_files_that_are_no_traces(tmp_path: Path) -> None:
    (tmp_path / "trace_worker_0.txt").write_bytes(b"x" * (1 << 17))
    with pytest.raises(TraceError, match=r"trace_worker_0\.txt: is not a trace"):
        Watch(tmp_path).look()
    write_run(PLAN, tmp_path)
    bare = (tmp_path / "trace_worker_0.txt").read_text().replace("\nid src", "\nof src")
    (tmp_path / "trace_worker_0.txt").write_text(bare[:8000])
    with pytest.raises(TraceError, match="of another tool's form"):
        Watch(tmp_path).look()
    write_run(PLAN, tmp_path)
    file = tmp_path / "trace_server_0.txt"
    file.write_text(file.read_text().replace("run: synthetic", "run: yesterday"))
    watch = Watch(tmp_path)
    watch.look()
    with pytest.raises(TraceError, match="of another run"):
        watch.picture()


PICTURE = Picture(
    "7c9e", "mercury", "synchronous", 4, 3,
    [
        WorkerFigures(0, 41, 3.5, 285.0, 28.5, 0.1, 0.2),
        WorkerFigures(1, 40, 3.4, 290.0, 2.9, 0.9, 12.25),
    ],
    [LinkFigures(w, s, 5e7, 2.5e7) for w in (0, 1) for s in (0, 1)],
)  # fmt: skip


def test_one_line() -> None:
    assert line(PICTURE) == (
        "step 40, 3.40 steps/s, waiting 10 %, slow: worker 1, last in 90 % of sums by 12.2 ms, "
        "to servers 1600 Mbit/s, to workers 800 Mbit/s"
    )
    stalled = line(PICTURE, 30)
    assert stalled.endswith("nothing new for 30 s; worker 1 is at step 40, others further")
    lost = Picture(**{**PICTURE.__dict__, "failure": "worker 1 was lost", "over": True})
    assert line(lost).endswith("failed: worker 1 was lost")
    assert line(Picture("", "", "", 0, 0)) == "waiting for trace files"
    began = Picture("7c9e", "mercury", "synchronous", 4, 1)
    assert line(began) == "no step yet"
    assert page(began, "traces", 9, 80, 0, 0)[1] == "no step yet"


def test_a_page_fits_its_terminal() -> None:
    drawn = page(PICTURE, "traces", 40, 100, 1e8, 0)
    assert drawn[0] == "run 7c9e: mercury, synchronous, 3 of 4 nodes in traces"
    assert drawn[2] == "slow: worker 1, last in 90 % of sums by 12.2 ms"
    assert "██████······     400  ███·········     200" in drawn[-1]
    for rows in (1, 5, 11, 12):
        small = page(PICTURE, "traces", rows, 30, 1e8, 0)
        assert len(small) <= rows
        assert all(len(text) <= 30 for text in small)
    assert page(PICTURE, "traces", 11, 80, 1e8, 0)[-1] == "3 more links, less busy"


def following(*words: object, **options: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tracer", "trace", "live", *map(str, words)]
    settings: dict[str, object] = {"stdout": subprocess.PIPE, "text": True, **options}
    return subprocess.Popen(command, cwd=ROOT, env=clean_environment(), **settings)  # type: ignore[call-overload, no-any-return]


def test_it_ends_with_the_job(tmp_path: Path) -> None:
    """And is there before it."""
    write_run(PLAN, tmp_path / "run")
    with following(tmp_path / "traces", "--every", 0.1, "--json") as watching:
        assert watching.stdout is not None
        assert json.loads(watching.stdout.readline())["seen"] == 0
        shutil.copytree(tmp_path / "run", tmp_path / "traces")
        told = [json.loads(text) for text in watching.stdout]
        assert watching.wait(60) == 0
    assert told[-1]["over"]
    assert told[-1]["slow_worker"] == 1
    server = tmp_path / "traces" / "trace_server_0.txt"
    server.write_text(server.read_text().replace("# end ", "# failed worker 1 was lost\n# end "))
    failed = mercury("trace", "live", tmp_path / "traces")
    assert failed.returncode == 1
    assert failed.stdout.rstrip().endswith("failed: worker 1 was lost")
    once = mercury("trace", "live", tmp_path / "nowhere", "--once")
    assert (once.returncode, once.stdout[9:]) == (0, "waiting for trace files\n")
    for wrong in (("--every", "0"), ("--link", "fast")):
        assert mercury("trace", "live", tmp_path, *wrong).returncode == 2


def hears_ctrl_c() -> None:
    """Also where these tests run in the background of a shell, which ignores it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def said(terminal: int) -> bytes:
    """What comes next; nothing if the other end is closed."""
    ready, _, _ = select.select([terminal], [], [], 60)
    assert ready, "nothing is said any more"
    try:
        return os.read(terminal, 4096)
    except OSError:
        return b""


def test_ctrl_c_on_a_terminal_brings_the_first_screen_back(tmp_path: Path) -> None:
    write_run(PLAN, tmp_path)
    for path in tmp_path.glob("*.txt"):  # as if all were still training
        path.write_text(path.read_text().split("# end ")[0])
    ours, theirs = pty.openpty()
    with following(tmp_path, stdout=theirs, preexec_fn=hears_ctrl_c) as watching:
        os.close(theirs)
        seen = b""
        while b"links, Mbit/s" not in seen:
            new = said(ours)
            assert new, seen
            seen += new
        watching.send_signal(signal.SIGINT)
        while new := said(ours):
            seen += new
        assert watching.wait(60) == 0
    os.close(ours)
    text = seen.decode()
    assert text.startswith("\x1b[?1049h")
    assert "slow: worker 1" in text
    assert text.rpartition("\x1b[?1049l")[2].startswith("step 29, ")
