"""`mercury trace` as its users meet it."""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import ROOT, mercury
from tracer.analysis import NAMES
from tracer.errors import TraceError
from tracer.output import whole_directory


def trace(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    return mercury("trace", *arguments, **options)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    done = trace("example", folder, "--servers", 2, "--iterations", 6, "--json")
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["wrote"]) == 9
    return folder


def test_help() -> None:
    top = trace("--help")
    assert top.returncode == 0
    for name in ("stats", "check", "report", "plot", "export", "convert", "diff", "example"):
        assert name in top.stdout
    assert "exit codes" in trace("export", "--help").stdout
    assert trace().returncode == 2
    assert trace("stats").returncode == 2
    assert trace("export", "svg", "x").returncode == 2


def test_check(run: Path, tmp_path: Path) -> None:
    clean = trace("check", run)
    assert (clean.returncode, clean.stderr) == (0, "")
    assert clean.stdout.startswith("clean: 9 files")
    shutil.copytree(run, tmp_path, dirs_exist_ok=True)
    worker = tmp_path / "trace_worker_0.txt"
    worker.write_text(worker.read_text().replace(" 0-8-s0 4 ", " 0-9-s0 4 "))
    broken = trace("check", tmp_path, "--json")
    said = json.loads(broken.stdout)
    assert broken.returncode == 1
    assert not said["ok"]
    assert {"op_num"} <= {finding["rule"] for finding in said["findings"]}


def test_stats(run: Path) -> None:
    whole = json.loads(trace("stats", run, "--json").stdout)
    assert [section["name"] for section in whole["sections"]] == list(NAMES[:-1])  # prophet
    assert whole["workers"] == 2
    text = trace("stats", run, "--only", "overheads", "--rows", 5).stdout
    assert "synchronisation" in text
    assert "Stragglers" not in text
    assert trace("stats", run, "--only", "weather").returncode == 2
    assert "has nothing about prophet" in trace("stats", run, "--only", "prophet").stderr


def test_one_file_alone(run: Path) -> None:
    assert trace("stats", run / "trace_server_1.txt").returncode == 0
    alone = trace("check", run / "trace_worker_0.txt")
    assert alone.returncode == 0
    assert "no file of worker 1" in alone.stdout


def test_convert_there_and_back(run: Path, tmp_path: Path) -> None:
    assert trace("convert", run, tmp_path / "b", "--to", "dlc").returncode == 0
    assert trace("convert", tmp_path / "b", tmp_path / "t", "--to", "txt").returncode == 0
    for file in run.iterdir():
        assert (tmp_path / "t" / file.name).read_bytes() == file.read_bytes()
    one = tmp_path / "one.dlc"
    assert trace("convert", run / "trace_worker_0.txt", one).returncode == 0
    assert one.stat().st_size < (run / "trace_worker_0.txt").stat().st_size / 2
    assert trace("convert", run, tmp_path / "c").returncode == 2
    assert "file to be converted" in trace("convert", one, one).stderr


def test_diff(run: Path, tmp_path: Path) -> None:
    assert trace("example", tmp_path, "--servers", 2, "--iterations", 6).returncode == 0
    same = trace("diff", run, tmp_path, "--fail-above", 1, "--json")
    assert same.returncode == 0
    assert json.loads(same.stdout)["iteration_change_percent"] == 0
    slow = [sys.executable, "-c", SLOW_RUN, str(tmp_path / "slow")]
    subprocess.run(slow, check=True, cwd=ROOT)
    worse = trace("diff", run, tmp_path / "slow", "--fail-above", 1)
    assert worse.returncode == 1
    assert "more than 1%" in worse.stdout
    refused = trace("diff", run, tmp_path, "--fail-above", "nan")
    assert refused.returncode == 2
    assert "'nan' is not a number of per cent" in refused.stderr


SLOW_RUN = (
    "import sys; from tracer.synthetic import Plan, write_run;"
    "write_run(Plan(servers=2, iterations=6, update_us=9000), sys.argv[1])"
)


def test_export_and_plot(run: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    window = trace("export", "chrome", run, "-o", tmp_path / "t.json", "--iterations", "2:3")
    assert window.returncode == 0
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert {e["args"]["iteration"] for e in events if e["ph"] == "X"} <= {2}
    assert trace("export", "csv", run, "-o", tmp_path / "t.csv").returncode == 0
    assert trace("export", "chakra", run, "-o", tmp_path / "et", "--json").returncode == 0
    assert trace("export", "chrome", run, "--iterations", "5").returncode == 2
    plotted = trace("plot", run, "-o", tmp_path / "png", "--iteration", 3, "--json")
    names = {Path(path).stem for path in json.loads(plotted.stdout)["wrote"]}
    assert {"timeline-iteration", "overheads-distributions", "sizes-throughput"} <= names
    for path in (tmp_path / "png").iterdir():
        assert path.read_bytes().startswith(b"\x89PNG")
    absent = trace("plot", run, "-o", tmp_path / "none", "--iteration", 99)
    assert absent.returncode == 2
    assert "holds iterations 0 to 5" in absent.stderr
    assert not (tmp_path / "none").exists()


def test_export_into_a_pipe(run: Path) -> None:
    piped = trace("export", "chrome", run, "-o", "/dev/stdout", "--quiet")
    assert (piped.returncode, piped.stderr) == (0, "")
    assert json.loads(piped.stdout)["traceEvents"]


def test_what_fails_leaves_no_folder(tmp_path: Path) -> None:
    def fail(path: Path) -> None:
        with whole_directory(path) as folder:
            (folder / "half.png").touch()
            raise TraceError("drawing has failed")

    with pytest.raises(TraceError, match="drawing"):
        fail(tmp_path / "plots" / "of today")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "kept").touch()
    with pytest.raises(TraceError):
        fail(tmp_path)
    assert (tmp_path / "kept").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("export", "csv", "RUN", "-o", "/proc/trace.csv"),
        ("export", "chrome", "RUN", "-o", "/proc/nowhere/trace.json"),
        ("export", "chakra", "RUN", "-o", "/proc/et"),
        ("convert", "RUN", "/proc/out", "--to", "dlc"),
        ("example", "/proc/run"),
    ],
)
def test_places_that_cannot_be_written(run: Path, arguments: tuple[str, ...]) -> None:
    words = [str(run) if word == "RUN" else word for word in arguments]
    refused = trace(*words)
    assert refused.returncode == 3
    assert "/proc/" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


def test_a_full_disk(run: Path, tmp_path: Path) -> None:
    """As far as a test can have one: no file may grow beyond some kilobytes."""

    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    target = tmp_path / "t.csv"
    target.write_text("what was there before")
    full = trace("export", "csv", run, "-o", target, preexec_fn=small_files)
    assert full.returncode == 3
    assert "cannot be written: File too large; choose another place or make room" in full.stderr
    assert target.read_text() == "what was there before"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("content", [b"", b"\x7fELF\x00\x01", b"PK\x03\x04\x00\x00"])
def test_files_that_are_no_traces(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "trace_worker_0.txt"
    file.write_bytes(content)
    refused = trace("check", tmp_path, "--json")
    assert refused.returncode == 3
    assert str(file) in json.loads(refused.stdout)["error"]
    assert "Traceback" not in refused.stderr


def test_another_run_s_files(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path, dirs_exist_ok=True)
    server = tmp_path / "trace_server_0.txt"
    server.write_text(server.read_text().replace("run: synthetic", "run: yesterday"))
    refused = trace("report", tmp_path)
    assert refused.returncode == 3
    assert "of another run" in refused.stderr


def test_a_run_that_ended_before_its_first_push(tmp_path: Path) -> None:
    (tmp_path / "trace_worker_0.txt").write_text(
        "====\nnumber of workers: 1\n====\n0 0 1 25 0 OP:= SendCom_TO_Servers\n"
    )
    refused = trace("stats", tmp_path)
    assert refused.returncode == 3
    assert "holds no training record" in refused.stderr


def test_commands_that_need_no_numpy_work_without_it(tmp_path: Path) -> None:
    (tmp_path / "numpy.py").write_text("raise ImportError('none here')\n")
    path = {"PYTHONPATH": f"{tmp_path}:{ROOT}", "PATH": "/usr/bin:/bin"}
    call = "import tracer; from pslite_ext.command.main import main; import sys; sys.exit(main({}))"
    command = [sys.executable, "-c", call.format(["version"])]
    done = subprocess.run(command, env=path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    command = [sys.executable, "-c", call.format(["trace", "stats", "."])]
    done = subprocess.run(command, env=path, capture_output=True, text=True)
    assert done.returncode == 3
    assert "needs NumPy: pip install numpy" in done.stderr


def test_memory_stays_bounded(tmp_path: Path) -> None:
    """600 thousand records are read and analysed within 1.2 GB of addresses."""
    script = f"""
import resource
import shutil
from tracer.synthetic import Plan, synthesize
from tracer.synthetic.lengthen import lengthened
from tracer.format.writer import write_trace
write_trace(lengthened(synthesize(Plan(iterations=3))[0], 600_000), {str(tmp_path / "t.txt")!r})
"""
    subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT)

    def little_memory() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (1_200_000_000, 1_200_000_000))

    one_thread = {"OPENBLAS_NUM_THREADS": "1", "PATH": "/usr/bin:/bin"}
    done = trace(
        "stats", tmp_path / "t.txt", "--only", "phases", "--json",
        preexec_fn=little_memory, env=one_thread,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["records"] >= 600_000
