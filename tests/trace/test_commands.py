"""`mercury trace` as it is typed: what it says of runs that are not whole, and what it refuses."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from pslite_ext.command.trace.command import FAILED, MISUSED, main
from tracer.errors import TraceError
from tracer.format.reader import read_trace
from tracer.format.record import Note
from tracer.format.writer import write_trace
from tracer.output import whole_file
from tracer.run import read_run
from tracer.synthetic import Plan, write_run

PLAN = Plan(workers=2, servers=2, iterations=4, ahead_us=(0, 900))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    write_run(PLAN, tmp_path / "run")
    return tmp_path / "run"


def test_what_could_not_be_read_is_said(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lost = run / "trace_server_1.txt"
    lost.write_text("")
    worker = run / "trace_worker_1.txt"
    worker.write_text(worker.read_text().replace("Push_Send_Worker", "Push_Sent_Worker", 3))
    out = str(run.parent / "out")
    for words in (
        ["stats", str(run), "--only", "phases"],
        ["export", "csv", str(run), "-o", out],
        ["diff", str(run), str(run)],
    ):
        assert main([*words, "--quiet"]) == 0
        said = capsys.readouterr().err
        assert f"note: {lost}: is empty" in said
        assert f"note: {run}: there is no file of server 1, of 2 servers" in said
        assert said.count(f"note: {worker}:") >= 3
    assert main(["convert", str(worker), f"{out}.dlc", "--quiet"]) == 0
    assert capsys.readouterr().err.count(f"note: {worker}:") >= 3
    assert main(["check", str(run), "--json", "--quiet"]) == 1
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert any(f["severity"] == "error" and f["where"] == str(lost) for f in findings)


def test_nothing_to_compare_is_no_pass(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    short = run.parent / "short"  # a window: when its one iteration began is not known
    short.mkdir()
    for file in run.iterdir():
        trace = read_trace(file)
        trace.records = trace.records.take(trace.iteration() == 3)
        trace.notes = [Note(0, "from step 3")]
        write_trace(trace, short / file.name)
    words = ["diff", str(run), str(short), "--quiet"]
    assert main(words) == 0
    assert main([*words, "--fail-above", "5"]) == FAILED
    assert "nothing can be compared" in capsys.readouterr().err


def test_a_window_is_of_chrome_alone(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    export = ["export", "csv", str(run), "-o", str(run.parent / "out"), "--iterations", "2:3"]
    assert main(export) == MISUSED
    assert "--iterations: goes with the format chrome alone" in capsys.readouterr().err
    export[1] = "chrome"
    export[-1] = "9:12"
    assert main([*export, "--quiet"]) == FAILED
    assert "the trace holds iterations 0 to 3" in capsys.readouterr().err
    for file in run.iterdir():
        trace = read_trace(file)
        trace.records = trace.records.take(trace.iteration() >= 2)
        trace.notes = [Note(0, "from step 2")]
        write_trace(trace, file)
    assert main([*export, "--quiet"]) == FAILED
    assert "the trace holds iterations 2 to 3" in capsys.readouterr().err


def test_a_device_and_a_link_stay_what_they_are(tmp_path: Path) -> None:
    pipe, link, target = tmp_path / "pipe", tmp_path / "link", tmp_path / "target"
    os.mkfifo(pipe)
    link.symlink_to(target)
    heard: list[bytes] = []
    reader = threading.Thread(target=lambda: heard.append(pipe.read_bytes()))
    reader.start()
    for path in (pipe, link):
        with whole_file(path) as file:
            file.write(b"all of it")
    reader.join()
    assert heard == [b"all of it"]
    assert pipe.is_fifo()
    assert link.is_symlink()
    assert target.read_bytes() == b"all of it"


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path: Path) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    with pytest.raises(BrokenPipeError), whole_file(f"/dev/fd/{theirs}") as file:
        file.write(b"all of it")
    os.close(theirs)


def test_an_example_replaces_no_traces(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.read_bytes() for path in run.iterdir()}
    assert main(["example", str(run)]) == MISUSED
    assert "holds traces already; choose another directory" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in run.iterdir()} == before


def test_names_and_numbers_that_no_run_has(run: Path, tmp_path: Path) -> None:
    text = (run / "trace_worker_1.txt").read_text()
    body = "".join(line for line in text.splitlines(True) if line[:1].isdigit())
    for name in ("trace_worker_3000000.txt", "trace_worker_1.txt"):
        odd = tmp_path / name
        odd.write_text(body.replace("-s0 ", "-s99999999 ") if "_1." in name else body)
        with pytest.raises(TraceError, match="more than 100000 are none"):
            read_run(odd)


def test_files_without_headers_are_of_one_run(run: Path) -> None:
    whole = read_run(run)
    for file in run.iterdir():
        text = file.read_text()
        lines = text.splitlines(True)
        file.write_text("".join(line for line in lines if line[:1].isdigit() or line[0] == "#"))
    bare = read_run(run)
    assert {(t.header.workers, t.header.servers) for t in bare.traces} == {(2, 2)}
    assert bare.num_servers == whole.num_servers
