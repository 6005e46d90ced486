"""Every command reads what a real job has left: LeNet-5, 2 workers, 1 server, a link of 1 Gbit/s.

In text under zmq, in the binary form under mercury; tests/golden/trace/README.md says how to renew
them. Nothing here depends on how fast the machine was that day.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pslite_ext.command.sim import command as sim
from pslite_ext.command.trace import command as trace
from tracer.analysis import NAMES
from tracer.clocks import aligned
from tracer.run import read_run
from tracer.synthetic import LENET5

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "trace"
STEPS, KEYS, WORKERS = 5, len(LENET5), 2
FILES = 7  # three nodes' tensors, and everybody's traffic with the scheduler
RUNS = pytest.mark.parametrize("mode", ["zmq", "mercury"])
Capture = pytest.CaptureFixture[str]


def run_of(mode: str) -> str:
    return str(GOLDEN / f"timed_{mode}")


def said(capsys: Capture, main: Any, *arguments: str) -> Any:
    assert main([*arguments, "--quiet", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_no_command_is_forgotten() -> None:
    commands = next(
        action
        for action in trace.parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    # `example` reads nothing.
    tried = {"check", "stats", "report", "live", "plot", "export", "convert", "diff", "example"}
    assert set(commands.choices) == tried


@RUNS
def test_it_is_a_whole_run(mode: str, capsys: Capture) -> None:
    found = said(capsys, trace.main, "check", run_of(mode), "--strict")
    assert (found["ok"], found["files"], found["findings"]) == (True, FILES, [])
    table, _ = aligned(read_run(run_of(mode)))
    assert len(table) == STEPS * KEYS * WORKERS
    assert (table.workers, table.servers, table.mode) == (WORKERS, 1, mode)


@RUNS
def test_stats(mode: str, capsys: Capture) -> None:
    found = said(capsys, trace.main, "stats", run_of(mode))
    tables = {
        table["title"]: table["rows"] for part in found["sections"] for table in part["tables"]
    }
    assert {part["name"] for part in found["sections"]} == {*NAMES} - {"prophet"}
    payload = WORKERS * sum(tensor.bytes for tensor in LENET5)
    volume = tables["Data volume per iteration"]
    assert len(volume) == STEPS
    for row in volume:
        assert payload < row["to_servers_bytes"] < 1.01 * payload
        assert payload < row["to_workers_bytes"] < 1.01 * payload
    of_iteration = {row["what"]: row for row in tables["Phases, all workers and iterations"]}
    # The first one's beginning was not captured.
    assert of_iteration["whole"]["count"] == (STEPS - 1) * WORKERS
    assert 0 < of_iteration["computation"]["mean_us"] < of_iteration["whole"]["mean_us"]
    overheads = {row["what"]: row["mean_us"] for row in tables["Overheads, overall"]}
    assert all(mean >= 0 for mean in overheads.values())
    shares = sum(row["share"] for row in tables["What the critical path consists of"])
    assert shares == pytest.approx(1)


@RUNS
def test_report(mode: str, capsys: Capture, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    page = tmp_path / "report.html"
    found = said(capsys, trace.main, "report", run_of(mode), "-o", str(page))
    assert 'id="advice"' in page.read_text()
    assert len(found["advice"]) == 3
    shares = sum(found[part] for part in ("computation", "links", "updates", "slow"))
    assert shares == pytest.approx(1)
    assert abs(found["self_check_error"]) < 0.2
    assert 0.05 < found["gains"]["links twice as fast"] < 0.5
    assert all(gain < 1 for gain in found["gains"].values())


@RUNS
def test_plot(mode: str, capsys: Capture, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    found = said(capsys, trace.main, "plot", run_of(mode), "-o", str(tmp_path / "plots"))
    assert all(Path(path).read_bytes().startswith(b"\x89PNG") for path in found["wrote"])


@RUNS
def test_live(mode: str, capsys: Capture) -> None:
    found = said(capsys, trace.main, "live", run_of(mode), "--once")
    assert found["mode"] == mode


@RUNS
def test_export(mode: str, capsys: Capture, tmp_path: Path) -> None:
    run = run_of(mode)
    chrome, csv, chakra = (str(tmp_path / name) for name in ("t.json", "t.csv", "et"))
    said(capsys, trace.main, "export", "chrome", run, "-o", chrome)
    events = json.loads(Path(chrome).read_text())["traceEvents"]
    assert len({event["args"]["iteration"] for event in events if event["ph"] == "X"}) == STEPS
    said(capsys, trace.main, "export", "csv", run, "-o", csv)
    records = sum(len(one.records) for one in read_run(run).all)
    assert len(Path(csv).read_text().splitlines()) == records + 1
    written = said(capsys, trace.main, "export", "chakra", run, "-o", chakra)["wrote"]
    assert len(written) == WORKERS + 1
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    said(capsys, trace.main, "export", "parquet", run, "-o", str(tmp_path / "t.parquet"))


@RUNS
def test_convert_and_diff(mode: str, capsys: Capture, tmp_path: Path) -> None:
    """There and back is the same; and no difference is found."""
    run = run_of(mode)
    forms = {".txt": "dlc", ".dlc": "txt"}
    before = sorted(Path(run).iterdir())
    other, again = tmp_path / "other", tmp_path / "again"
    for source, target in ((run, other), (str(other), again)):
        to = forms[next(iter(Path(source).iterdir())).suffix]
        said(capsys, trace.main, "convert", source, str(target), "--to", to)
    assert [path.read_bytes() for path in sorted(again.iterdir())] == [
        path.read_bytes() for path in before
    ]
    found = said(capsys, trace.main, "diff", run, str(other), "--fail-above", "1")
    assert found["iteration_change_percent"] == 0


def replayed(capsys: Capture, run: str, *more: str) -> Any:
    return said(capsys, sim.main, "replay", run, *more)


@RUNS
def test_sim_replay(mode: str, capsys: Capture) -> None:
    own = replayed(capsys, run_of(mode))
    assert own["self_check_passed"]
    changes: Sequence[tuple[str, ...]] = (
        ("--bandwidth", "10Gbps"),
        ("--bandwidth", "100Mbps"),
        ("--workers", "8"),
        ("--slow-worker", "1:5"),
    )
    fast, slow, many, late = (
        replayed(capsys, run_of(mode), *change)["iteration_s"] for change in changes
    )
    assert fast < own["iteration_s"] < min(slow, many, late)
