"""Profiles of MXNet and torch beside the trace, on one clock."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from pslite_ext.command.trace.command import main
from tests.trace.chrome_rules import violations
from tests.trace.profiles import kineto, mxnet
from tests.trace.synthetic_runs import run_of
from tracer.clocks import aligned
from tracer.errors import TraceError, UsageError
from tracer.export import profile
from tracer.export.chrome import write_chrome
from tracer.export.profile import named_profile, of_workers, read_profile
from tracer.round_trip import W_PUSH_SEND
from tracer.synthetic import Plan, write_run

AHEAD_US = 5_000_000
PLAN = Plan(workers=2, servers=1, iterations=4, mode="mercury", ahead_us=(0, AHEAD_US, 40))
RUN = run_of(PLAN)
TABLE, ALIGNMENT = aligned(RUN)
START_US = int(TABLE.times[W_PUSH_SEND].min())  # of the run's clock, which is worker 0's
OPERATORS = [("Convolution", 0, 400), ("Activation", 400, 400), ("FullyConnected", 400, 700)]


def written(path: Path, document: Any) -> str:
    text = json.dumps(document).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return str(path)


def merged(folder: Path, files: list[str], cut: bool = False) -> list[dict[str, Any]]:
    profiles = of_workers(files, 2)
    target = folder / "merged.json"
    window = (0, int(TABLE.iteration.max()) + 1) if cut else None
    write_chrome(RUN, TABLE, target, True, profiles, ALIGNMENT, window)
    document = json.loads(target.read_text())
    assert violations(document) == []
    lanes = {
        (e["pid"], e["tid"]): e["args"]["name"]
        for e in document["traceEvents"]
        if e["name"] == "thread_name"
    }
    origin = document["otherData"]["start_us"]
    return [
        {**e, "lane": lanes.get((e["pid"], e["tid"])), "us": origin + e["ts"]}
        for e in document["traceEvents"]
        if e["ph"] != "M"
    ]


def test_mxnet_s_operators_stand_where_they_ran(tmp_path: Path) -> None:
    first = written(tmp_path / "worker_0.json", mxnet(START_US + 100, OPERATORS))
    other = written(tmp_path / "b.json", mxnet(START_US + 300 + AHEAD_US, OPERATORS))
    events = merged(tmp_path, [first, f"1:{other}"])
    for process, at in ((1, START_US + 100), (2, START_US + 300)):
        ran = [e for e in events if e["pid"] == process and e["lane"] == "cpu/0"]
        assert [e["name"] for e in sorted(ran, key=lambda e: (e["ts"], e["name"]))] == [
            "Convolution", "Activation", "FullyConnected",
        ]  # fmt: skip
        within = ALIGNMENT.clocks[f"worker {process - 1}"].within_us
        assert min(e["us"] for e in ran) == pytest.approx(at, abs=within + 1)
    waits = [e for e in events if e["name"] == "MXNDArrayWaitAll"]
    assert [e["dur"] for e in waits] == [900, 900]
    assert not any(e["lane"] == "operator" for e in events)  # told twice
    assert sum(e["ph"] == "C" for e in events) == 2
    assert any(e["name"] == "exposed communication" for e in events)


def test_torch_s_kernels_and_arrows(tmp_path: Path) -> None:
    base_ns = (START_US + AHEAD_US) * 1000 + 250
    file = written(tmp_path / "trace.json.gz", kineto(base_ns, 1))
    events = [e for e in merged(tmp_path, [file]) if e["pid"] == 2]
    lanes = {e["name"]: e["lane"] for e in events if e["ph"] == "X"}
    assert lanes["aten::linear"] == lanes["aten::addmm"] == "python CPU"
    assert lanes["gemm"] == "GPU 0 stream 7"
    assert lanes["PyTorch Profiler (0)"] == "Spans"
    linear = next(e for e in events if e["name"] == "aten::linear")
    assert linear["args"] == {"External id": 1}
    assert linear["dur"] == 80.25
    within = ALIGNMENT.clocks["worker 1"].within_us
    assert linear["us"] == pytest.approx(START_US + 100.75, abs=within + 1)
    arrows = [e for e in events if e.get("cat") == "ac2g"]
    assert sorted(e["ph"] for e in arrows) == ["f", "s"]  # the one without an end is left out
    assert sum(e["ph"] == "i" for e in events) == 1


def test_numbers_that_json_does_not_know(tmp_path: Path) -> None:
    profile = mxnet(START_US, OPERATORS)
    profile["traceEvents"][3]["args"] = {"loss": float("nan")}
    merged(tmp_path, [written(tmp_path / "worker_0.json", profile)])
    text = (tmp_path / "merged.json").read_text()
    assert '"args":{"loss":null}' in text
    assert "NaN" not in text


def test_slices_that_cross_are_put_apart(tmp_path: Path) -> None:
    crossing = [("a", 0, 100), ("b", 50, 150), ("c", 60, 90), ("d", 150, 160)]
    events = merged(tmp_path, [f"0:{written(tmp_path / 'p.json', mxnet(START_US, crossing))}"])
    lanes = {e["name"]: e["lane"] for e in events}
    assert [lanes[n] for n in "abcd"] == ["cpu/0", "cpu/0 (2)", "cpu/0", "cpu/0"]


def test_a_window_of_iterations_cuts_profiles_too(tmp_path: Path) -> None:
    long = [("before", -90_000, -80_000), ("in", 10, 20), ("after", 10**9, 10**9 + 5)]
    file = f"0:{written(tmp_path / 'p.json', mxnet(START_US, long))}"
    names = {e["name"] for e in merged(tmp_path, [file], cut=True)}
    assert "in" in names
    assert not names & {"before", "after"}
    assert {"before", "in", "after"} <= {e["name"] for e in merged(tmp_path, [file])}


def test_whose_it_is(tmp_path: Path) -> None:
    assert named_profile("3:a.json") == (3, "a.json")
    assert named_profile("a:b.json") == (None, "a:b.json")
    document = mxnet(START_US, OPERATORS)
    for name, rank in (("worker_1.json", 1), ("RANK-12.json", 12), ("x1.json", None)):
        assert read_profile(written(tmp_path / name, document)).rank == rank
    said = written(tmp_path / "rank0.json", kineto(START_US * 1000, 1))
    assert read_profile(said).rank == 1
    unsaid = str(tmp_path / "x1.json")
    assert of_workers([unsaid], 1)[0].rank == 0
    with pytest.raises(UsageError, match=r"does not say which worker's it is; write 0:"):
        of_workers([unsaid], 2)
    with pytest.raises(UsageError, match="is of worker 12, and there are 2"):
        of_workers([str(tmp_path / "RANK-12.json")], 2)
    with pytest.raises(UsageError, match=r"is of worker 0, as is .*x1\.json"):
        of_workers([f"0:{unsaid}", f"0:{said}"], 2)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"{", "is not JSON, or is cut off"),
        (b"\x1f\x8bxx", "cannot be read"),
        (gzip.compress(b"[]", mtime=0)[:12] + b"xxxxxxxxxxxx", "cannot be read"),
        (
            gzip.compress(b" " * 1001, mtime=0),
            "more than 0 MiB when it is unpacked; profile fewer steps",
        ),
        (gzip.compress(b" " * 1000, mtime=0), "is not JSON"),
        (b"[" * 100000, "is nested too deep to be a profile"),
        (b'{"a": 1}', "no list of traceEvents"),
        (b'{"traceEvents": [{"ph": "X", "ts": 5, "dur": 1}]}', "does not say when it was"),
        (b'[{"ph": "C", "ts": 1700000000000000, "name": "n"}]', "was the profiler running"),
    ],
)
def test_what_is_no_profile(
    content: bytes, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profile, "UNPACKED_BYTES_MAX", 1000)
    (tmp_path / "p.json").write_bytes(content)
    with pytest.raises(TraceError, match=says):
        read_profile(tmp_path / "p.json")
    with pytest.raises(TraceError, match="cannot be read"):
        read_profile(tmp_path / "none.json")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(PLAN, tmp_path / "run")
    mine = written(tmp_path / "worker_0.json", mxnet(START_US, OPERATORS))
    old = written(tmp_path / "old.json", mxnet(START_US - 3_600_000_000, OPERATORS))
    target = tmp_path / "merged.json"
    words = ["export", "chrome", str(tmp_path / "run"), "-o", str(target), "--profile"]
    assert main([*words, mine]) == 0
    assert "FullyConnected" in target.read_text()
    assert main([*words, f"0:{old}"]) == 3
    assert "ends before what the trace holds, 3600.0 s away" in capsys.readouterr().err
    assert main(["export", "csv", str(tmp_path / "run"), "--profile", mine]) == 2
