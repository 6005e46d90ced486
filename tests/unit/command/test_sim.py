"""`mercury sim`: answers, files, and one line for whatever is wrong."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pslite_ext.command.sim import replay as sim_replay
from pslite_ext.command.sim.command import main
from pslite_ext.forecast.model import POLICIES, Job, Layer, ModelError, Options, predict
from pslite_ext.forecast.model.architectures import ARCHITECTURES
from pslite_ext.forecast.model.job_file import find_job, read_job
from pslite_ext.forecast.model.papers import predicted, wrong_orders
from pslite_ext.quantity import QuantityError, as_rate, bytes_per_second, seconds, size
from tracer.replay import Replay
from tracer.synthetic import Plan, write_run

BIG = "1" + 15 * "0"
JOB = {
    "layers": [
        {"name": "first", "bytes": 1000, "bp_s": 2, "fp_s": 1, "upd_s": 0.5},
        {"name": "second", "bytes": 2000, "bp_s": 1, "fp_s": 1, "upd_s": 0.5},
        {"name": "third", "bytes": 3000, "bp_s": 1, "fp_s": 1, "upd_s": 0.5},
    ]
}


@pytest.fixture
def job(tmp_path: Path) -> str:
    path = tmp_path / "job.json"
    path.write_text(json.dumps(JOB))
    return str(path)


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("traces")
    write_run(Plan(iterations=4), folder)
    return str(folder)


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main([*arguments, "--json", "--quiet"]) == 0
    return json.loads(capsys.readouterr().out)


def test_predict_tells_the_times_of_the_formulas(
    capsys: pytest.CaptureFixture[str], job: str
) -> None:
    found = told(capsys, "predict", job, "--bandwidth", "8kbps")
    assert (found["iteration_s"], found["oracle_s"]) == (9.5, 8.5)
    table = found["table"]
    assert [row["push_end_ms"] for row in table] == pytest.approx([5000, 4000, 7000])
    # Forward of the first waits from 4 to 5, of the third from 8 on for nothing.
    assert [row["wait_ms"] for row in table] == pytest.approx([1000, 0, 0])


def test_predict_draws_an_iteration(capsys: pytest.CaptureFixture[str], job: str) -> None:
    assert main(["predict", job, "--bandwidth", "1kB/s", "--rows", "1"]) == 0
    out = capsys.readouterr().out
    assert "iteration 9500.000 ms" in out
    assert "... 2 more rows" in out
    backward = next(line for line in out.splitlines() if "backward" in line)
    assert backward.count("#") == round(72 * 4 / 9.5)


def test_predict_compares_all_policies(
    capsys: pytest.CaptureFixture[str], job: str, tmp_path: Path
) -> None:
    table = told(capsys, "predict", job, "--bandwidth", "1kB/s", "--policy", "all")["table"]
    times = {row["policy"]: row["iteration_ms"] for row in table}
    assert times["oracle"] == min(times.values())
    assert times["mercury"] == sorted(times.values())[1]
    rounded = tmp_path / "rounded.json"  # its seconds added up in another order are fewer
    layer = {"bytes": 0, "bp_s": 0.1, "fp_s": 0.2}
    rounded.write_text(json.dumps({"layers": [layer] * 10}))
    words = ["predict", str(rounded), "--bandwidth", "1kB/s", "--policy", "all"]
    assert min(row["waits_ms"] for row in told(capsys, *words)["table"]) == 0


def test_sweep_writes_csv_and_pictures(
    capsys: pytest.CaptureFixture[str], job: str, tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    table, picture = tmp_path / "sweep.csv", tmp_path / "sweep.svg"
    words = ["sweep", job, "--from", "1kB/s", "--to", "10kB/s", "--points", "5"]
    words += ["--policies", "mercury,wfbp", "--csv", str(table), "--plot", str(picture)]
    assert main(words) == 0
    rows = list(csv.DictReader(table.open()))
    assert list(rows[0]) == ["gbit_per_s", "mercury", "wfbp"]
    assert float(rows[0]["mercury"]) == pytest.approx(8.5 / 9.5)
    assert picture.read_text().count("<svg") == 1


def test_required_bandwidth_of_several_models(capsys: pytest.CaptureFixture[str]) -> None:
    models = ["vgg16", "lenet5", "lenet5"]
    found = told(capsys, "required-bandwidth", *models, "--policies", "mercury,wfbp")
    table = found["table"]
    assert [row["model"] for row in table] == ["vgg16", "lenet5 2", "lenet5 3"]
    for row in table:
        assert row["mercury"] < 0.7 * row["wfbp"]
    assert main(["required-bandwidth", "lenet5", "--latency", "1s"]) == 0
    assert "inf" in capsys.readouterr().out


def test_a_host_s_workers_are_one_to_the_network(
    capsys: pytest.CaptureFixture[str], job: str
) -> None:
    words = ["--bandwidth", "1kB/s", "--packet", "50"]
    shared = ["--per-host", "4", *words]
    alone = told(capsys, "scale", job, *words, "--most", "2", "--policies", "mercury")["table"]
    table = told(capsys, "scale", job, *shared, "--most", "8", "--policies", "mercury")["table"]
    assert [(row["workers"], row["servers"]) for row in table] == [(1, 1), (2, 1), (4, 1), (8, 2)]
    assert table[2]["mercury"] == alone[0]["mercury"]
    assert table[3]["mercury"] == alone[1]["mercury"]
    shared[1] = "6"
    table = told(capsys, "scale", job, *shared, "--most", "24", "--policies", "ring")["table"]
    assert [row["workers"] for row in table] == [1, 2, 4, 6, 12, 24]
    table = told(capsys, "scale", job, *shared, "--policies", "ring")["table"]
    assert table[-1]["workers"] == 3072
    assert main(["scale", job, *shared, "--most", "25"]) == 2
    assert "--per-host 6: 25 workers do not fill their hosts" in capsys.readouterr().err
    shared[1] = "4"
    for name in ("predict", "cluster"):
        one = told(capsys, name, job, *words, "--workers", "2")
        other = told(capsys, name, job, *shared, "--workers", "8")
        keys = [key for key in one if "iteration" in key]
        assert [one[key] for key in keys] == [other[key] for key in keys]
    slow = ["--workers", "8", "--slow-worker", "5:3"]
    rows = told(capsys, "cluster", job, *shared, *slow)["table"]
    assert [row["host"] for row in rows] == [0, 1]
    assert rows[1]["computation_ms"] == pytest.approx(3 * rows[0]["computation_ms"])
    one = told(capsys, "cluster", job, *words, "--workers", "2", "--node", "worker1:100B/s")
    slow = ["--workers", "8", "--node", "worker5:100B/s"]
    assert told(capsys, "cluster", job, *shared, *slow)["iteration_s"] == one["iteration_s"]
    planned = told(capsys, "plan", job, *shared, "-n", "8")
    assert (
        planned["enough_servers"] == told(capsys, "plan", job, *words, "-n", "2")["enough_servers"]
    )
    assert planned["workers"] == 8
    assert main(["predict", job, *shared, "--workers", "6"]) == 2
    assert "6 workers do not fill their hosts" in capsys.readouterr().err


def test_scale_and_plan(capsys: pytest.CaptureFixture[str], job: str, tmp_path: Path) -> None:
    words = ["--bandwidth", "1kB/s", "--packet", "50"]
    table = told(capsys, "scale", job, *words, "--most", "6", "--servers", "2")["table"]
    assert [row["workers"] for row in table] == [1, 2, 4, 6]
    assert table[3]["mercury"] > 2 * table[1]["mercury"]
    cut = [*words, "--partition", "200"]
    each = ["--policy", "p3", "--workers", "6", "--iterations", "1"]
    (whole,) = told(capsys, "cluster", job, *cut, *each)["iteration_s"]["job"]
    table = told(capsys, "scale", job, *cut, "--policies", "p3", "--most", "6")["table"]
    assert table[3]["p3"] == pytest.approx(1e3 * whole)  # of those that wait, all are simulated
    in_switch = told(capsys, "scale", job, *words, "--most", "4", "--aggregate", "switch")["table"]
    assert in_switch[2]["mercury"] < 1.1 * in_switch[0]["mercury"]

    found = told(capsys, "plan", job, "-n", "8", "--bandwidth", "2kB/s", "--packet", "20")
    assert found["limited_by"] == "computation"
    enough, table = found["enough_servers"], found["table"]
    times = {row["servers"]: row["iteration_ms"] for row in table}
    assert times[enough] <= 1.01 * min(times.values()) < times[enough - 1]
    assert table[0]["limited_by"] == "servers' links"
    pytest.importorskip("matplotlib")
    every = ["--most", "1", "--policies", ",".join(POLICIES), "--quiet"]
    assert main(["scale", job, *words, *every, "--plot", str(tmp_path / "scale.svg")]) == 0
    words = ["plan", "lenet5", "-n", "2", "--bandwidth", "10Gbps", "--quiet"]
    assert main([*words, "--plot", str(tmp_path / "plan.png")]) == 0
    assert "servers are enough: of the numbers tried, none" in capsys.readouterr().out


def test_a_policy_that_is_named_twice_is_one(capsys: pytest.CaptureFixture[str], job: str) -> None:
    words = ["--bandwidth", "1kB/s", "--most", "2", "--policies", "mercury,priority"]
    table = told(capsys, "scale", job, *words)["table"]
    assert list(table[0]) == ["workers", "servers", "mercury", "mercury_speedup"]


def test_a_cluster_of_your_making(
    capsys: pytest.CaptureFixture[str], job: str, tmp_path: Path
) -> None:
    network = ["--bandwidth", "1kB/s", "--packet", "50", "--iterations", "2"]
    alone = ["cluster", job, *network]

    def slowest(*more: str) -> Any:
        return told(capsys, *alone, *more)["iteration_s"]

    plain = max(slowest()["job"])
    assert plain == pytest.approx(9.5, rel=0.06)  # what predict says of small packets
    assert max(slowest("--slow-worker", "1:3")["job"]) == pytest.approx(3 * 8.5, rel=0.2)
    assert max(slowest("--node", "server0:100B/s")["job"]) > 2 * plain
    changed = slowest("--change", "10s:0.1kB/s")["job"]
    assert changed[0] == pytest.approx(plain, rel=0.01)
    assert changed[1] > 4 * plain
    racks = ["--workers", "4", "--servers", "1", "--racks", "2", "--rack-bandwidth", "1kB/s"]
    assert max(slowest(*racks, "--aggregate", "rack")["job"]) < max(slowest(*racks)["job"])
    assert max(slowest("--aggregate", "switch")["job"]) <= plain
    fast = [f"--node={kind}{place}:10kB/s" for kind in ("worker", "server") for place in (0, 1)]
    assert slowest("--racks", "1", *fast)["job"] == pytest.approx(slowest(*fast)["job"], rel=0.01)
    window = ["--latency", "100ms", "--window"]
    assert max(slowest(*window, "50")["job"]) > max(slowest(*window, "500")["job"])
    beside = max(slowest("--window", "100", "--beside")["job"])
    assert max(slowest("--window", "100", "--beside", "--reaction", "50ms")["job"]) > beside

    both = told(capsys, "cluster", job, job, *network, "--policy", "p3", "--jitter", "0.1")
    table = both["table"]
    assert [(row["job"], row["worker"]) for row in table] == [
        ("job 1", 0), ("job 1", 1), ("job 2", 0), ("job 2", 1),
    ]  # fmt: skip
    assert min(row["iteration_ms"] for row in table) > 1000 * plain
    pytest.importorskip("matplotlib")
    assert main([*alone, "--quiet", "--plot", str(tmp_path / "cluster.svg")]) == 0
    assert "into server" in capsys.readouterr().out
    assert main([*alone, "--quiet", "--window", "100"]) == 0
    assert ", queue up to 0 kB" in capsys.readouterr().out


def test_replay_reports_its_own_error(capsys: pytest.CaptureFixture[str], traces: str) -> None:
    found = told(capsys, "replay", traces)
    assert found["self_check_error"] == pytest.approx(0, abs=0.02)
    assert found["self_check_passed"]
    words = ["--bandwidth", "10Gbps", "--policy", "mercury", "--workers", "16"]
    other = told(capsys, "replay", traces, *words)
    table = other["table"]
    assert [row["what"] for row in table] == ["recorded", "replayed as recorded", "replayed"]
    assert table[2]["workers"] == 16
    slow = told(capsys, "replay", traces, "--slow-worker", "1:2.0")
    assert slow["iteration_s"] > 1.2 * found["iteration_s"]


@pytest.mark.parametrize(
    ("error", "says", "speedup"),
    [(0.01, "fits this run", 2.0), (-0.12, "give or take 12%", 2.0), (0.6, "no speed-ups", None)],
)
def test_a_replay_that_is_off_says_what_its_speed_ups_are_worth(
    error: float, says: str, speedup: float | None, traces: str,
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    def other(*_: object) -> Replay:
        return Replay(np.full((1, 2), 0.5 * (1 + error)))

    monkeypatch.setattr(sim_replay, "self_check", lambda *_: (1.0, 1.0 + error))
    monkeypatch.setattr(sim_replay, "replay", other)
    found = told(capsys, "replay", traces, "--workers", "4")
    assert found["self_check_passed"] == (speedup is not None)
    assert found["table"][2]["speedup"] == speedup
    assert main(["replay", traces, "--workers", "4", "--quiet"]) == 0
    said = capsys.readouterr().out
    assert f"off by {error:+.1%}" in said
    assert says in said


PREDICT = ["predict", "lenet5", "--bandwidth", "1Gbps"]
PLAN = ["plan", "lenet5", "-n", "4", "--bandwidth", "1Gbps"]
CLUSTER = ["cluster", "lenet5", "--bandwidth", "1Gbps"]
BAD = [
    (["predict", "no-such-model", "--bandwidth", "1Gbps"], "neither a file nor a model"),
    (["predict", "vgg16", "--bandwidth", "0Gbps"], "bandwidth must be > 0"),
    (["predict", "vgg16", "--bandwidth=-1Gbps"], "must not be negative"),
    (["predict", "vgg16", "--bandwidth", "fast"], "'fast' is not a bandwidth"),
    (["predict", "vgg16", "--bandwidth", "1Gbps", "--policy", "best"], "no policy 'best'"),
    (["predict", "vgg16", "--bandwidth", "1Gbps", "--latency", "5"], "'5' is not a time"),
    (["predict", "vgg16", "--bandwidth", "1Gbps", "--packet", "x"], "'x' is not a size"),
    (["predict", "vgg16", "--bandwidth", "1Gbps", "--plot", "x.pdf"], "x.pdf: pictures"),
    (["predict", "x" * 300, "--bandwidth", "1Gbps"], "neither a file nor a model"),
    (["predict", "vgg16", "--bandwidth", "1e308Gbps"], "'1e308Gbps' is too large"),
    ([*PREDICT, "--latency", "1e400s"], "'1e400s' is too large"),
    ([*PREDICT, "--latency", "1e308s"], "longer than can be counted"),
    (["sweep", "lenet5", "--latency", "1e308s"], "longer than can be counted"),
    (["sweep", "lenet5", "--from=1e-320bps", "--workers=999", "--servers=1"], "can be counted"),
    (["required-bandwidth", "lenet5", "--latency", "1e308s"], "longer than can be counted"),
    ([*PREDICT, "--policy", "p3", "--partition", "1e-13"], "1.72e+19 pieces or packets of 1e-13"),
    (["predict", "vgg16", "--bandwidth", "1Gbps", "--packet", "1"], "use larger ones"),
    ([*PREDICT, "--policy=bytescheduler", "--partition=1e-300", "--credit=1e300"], "too large"),
    (["sweep", "vgg16", "--from", "2Gbps", "--to", "1Gbps"], "is not less than"),
    (["sweep", "vgg16", "--policies", "best"], "no policy 'best'"),
    (["sweep", "vgg16", "--points", "1"], "--points 1: a sweep has at least two"),
    (["required-bandwidth", "vgg16", "--target", "1"], "target must be between 0 and 1"),
    (["required-bandwidth", "vgg16", "--target", "1e-320"], "longer than can be counted"),
    (["required-bandwidth", "vgg16", "--policies", "oracle"], "name another policy"),
    (["scale", "vgg16", "--bandwidth", "1Gbps", "--packet", "1"], "packets are too many"),
    (["scale", "vgg16", "--bandwidth", "1Gbps", "--policies=p3", "--aggregate=switch"], "servers"),
    (["scale", "vgg16", "--bandwidth", "1Gbps", "--policies=p3"], "ask for at most 32"),
    (["plan", "vgg16", "-n", "2", "--bandwidth", "1Gbps", "--policy", "ring"], "has no servers"),
    ([*PLAN, "--worth", "nan"], "--worth must be a finite number >= 0, not nan"),
    (["replay", "no-such-folder"], "no-such-folder"),
    ([*CLUSTER, "--racks", "3"], "only 2 workers"),
    ([*CLUSTER, "--aggregate", "rack"], "needs --racks"),
    ([*CLUSTER, "--rack-bandwidth", "1Gbps"], "needs --racks"),
    ([*CLUSTER, "--aggregate", "switch", "--policy", "p3"], "keeps its sums on servers"),
    ([*CLUSTER, "--slow-worker", "2:1.5"], "no '2' among 0 to 1"),
    ([*CLUSTER, "--slow-worker", "1:x"], "'x' is not a number"),
    ([*CLUSTER, "--slow-worker", "1:0"], "must be a finite number > 0"),
    ([*CLUSTER, "--node", "host0:1Gbps"], "a node is worker0, server0"),
    ([*CLUSTER, "--per-host=2", "--node=worker0:1Gbps", "--node=worker1:2Gbps"], "another rate"),
    ([*CLUSTER, "--change", "5s"], "not of the form TIME:RATE"),
    ([*CLUSTER, "--change", "0s:1Gbps"], "must each begin later than the one before"),
    ([*CLUSTER, "--jitter=-1"], "jitter must be"),
    ([*CLUSTER, "--packet", "1e-300"], "packets are too many"),
    ([*CLUSTER, "--policy", "ring"], "cannot be simulated"),
    ([*CLUSTER, "--window", "x"], "'x' is not a size"),
    ([*CLUSTER, "--reaction", "5"], "'5' is not a time"),
    ([*CLUSTER, "--beside"], "needs --window"),
    ([*CLUSTER, "--beside", "--window", "9", "--servers", "1", "--node", "server0:1Mbps"], "rates"),
    ([*CLUSTER, "--beside", "--window", "9", "--servers", "4"], "4 servers are more than 2 hosts"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "says"), BAD)
def test_bad_input_is_one_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], words: list[str], says: str
) -> None:
    assert main([*words, "--quiet"]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "says"),
    [(MemoryError(), "not enough memory"), (OverflowError("too far"), "too large (too far)")],
)
def test_what_a_machine_cannot_do_is_one_line(
    error: Exception, says: str,
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    def answer(_: object) -> None:
        raise error

    monkeypatch.setattr(sim_replay, "answer", answer)
    assert main(["replay", "traces"]) == 2
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    "words", [["predict"], *(["scale", "x", "--bandwidth=1Gbps", "--most", n] for n in ("0", BIG))]
)
def test_wrong_usage(words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2


@pytest.mark.parametrize(
    "name", ["predict", "sweep", "required-bandwidth", "replay", "cluster", "scale", "plan"]
)
def test_help(capsys: pytest.CaptureFixture[str], name: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    assert "--json" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is not JSON"),
        ("[" * 100000, "is nested too deep to be a job"),
        ("[]", 'no list "layers"'),
        ('{"layers": []}', "at least one layer"),
        ('{"layers": [5]}', "layer 1: is not an object"),
        ('{"layers": [{"bytes": 1, "bp_s": 1}]}', "layer 1: has no 'fp_s'"),
        ('{"layers": [{"bytes": 1, "bp_s": 1, "fp_s": 1, "x": 1}]}', "unknown 'x'"),
        ('{"layers": [{"bytes": -1, "bp_s": 1, "fp_s": 1}]}', "bytes must be a finite number >= 0"),
        ('{"layers": [{"bytes": 1%s, "bp_s": 1, "fp_s": 1}]}' % ("0" * 400), "not inf"),
        ('{"layers": [{"bytes": 1e300, "bp_s": 1, "fp_s": 1}]}', "bytes must be at most 1e"),
        ('{"layers": [{"bytes": 1, "bp_s": 1e308, "fp_s": 1e308}]}', "longer than can be counted"),
        ('{"layers": [{"name": "\\ud800", "bytes": 1, "bp_s": 1, "fp_s": 1}]}', "layer 1: 'name'"),
        ('{"layers": [{"name": [1, 2], "bytes": 1, "bp_s": 1, "fp_s": 1}]}', "layer 1: 'name'"),
        ('{"layers": [{"bytes": "1", "bp_s": 1, "fp_s": 1}]}', "bytes must be a number"),
        ('{"layers": [{"bytes": NaN, "bp_s": 1, "fp_s": 1}]}', "bytes must be a finite number"),
    ],
)  # fmt: skip
def test_a_wrong_job_file_is_refused(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "job.json"
    path.write_text(text)
    with pytest.raises(ModelError, match=says):
        read_job(path)
    with pytest.raises(ModelError, match="cannot be read"):
        read_job(tmp_path)


def test_quantities() -> None:
    assert bytes_per_second("10Gbps") == bytes_per_second("1.25 GB/s") == 1.25e9
    assert bytes_per_second("8kbit/s") == 1000
    assert seconds("50us") == pytest.approx(50e-6)
    assert size("4MB") == 4e6
    assert size("1KiB") == size("1024") == 1024
    for quantity, text in ((bytes_per_second, "1e308kB/s"), (seconds, "1e400s"), (size, "1e308kB")):
        with pytest.raises(QuantityError, match="is too large"):
            quantity(text)
    assert [as_rate(value) for value in (1.25e9, 50.0, float("inf"))] == [
        "10 Gbit/s",
        "400 bit/s",
        "never",
    ]


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_model_is_a_job(name: str) -> None:
    job = find_job(name, compute_s=2.0, steps=5)
    assert job.compute_s == pytest.approx(2.0)
    assert len({*job.bp_end}) <= 5
    with pytest.raises(ModelError, match="steps"):
        job.in_steps(0)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"latency": 1}, "no option 'latency'"),
        ({"latency_s": -1}, "latency_s must be"),
        ({"latency_s": "1"}, "latency_s must be a number"),
        ({"workers": 0}, "workers must be a whole number"),
        ({"partition_bytes": 0}, "partition_bytes must be"),
        ({"serial_pull": 1}, "serial_pull must be true or false"),
    ],
)
def test_wrong_options_are_named(options: dict[str, object], says: str) -> None:
    with pytest.raises(ModelError, match=says):
        predict(Job((Layer("a", 1, 1, 1),)), 1, "p3", **options)


def test_wrong_jobs_and_bandwidths_are_named() -> None:
    with pytest.raises(ModelError, match="a job is made of layers"):
        Job((5,))  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="at least one layer"):
        Job(())
    with pytest.raises(ModelError, match=r"layer 'a': bp_s must be a finite number >= 0, not -1"):
        Layer("a", 1, -1, 1)
    for bandwidth in (0, -1, float("nan"), float("inf")):
        with pytest.raises(ModelError, match="bandwidth must be a finite number > 0"):
            predict(Job((Layer("a", 1, 1, 1),)), bandwidth)


def test_options_can_be_replaced() -> None:
    assert replace(Options(), workers=6, servers=2).share == pytest.approx(1 / 3)


def test_the_orders_of_prophet_s_table() -> None:
    assert wrong_orders(predicted()) == []
