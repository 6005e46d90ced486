"""SketchDLC's figures of a captured run, and a job that is captured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scripts.lab.benches import captures
from scripts.lab.benches.captured_figures import (
    DATA,
    LENGTHS,
    OVERHEADS,
    PHASES,
    captured_figures,
)
from scripts.lab.benches.captures import MODELS, PAPER, CapturedModel, Gathered
from scripts.lab.benches.case import Figure
from scripts.lab.systems.job import Outcome
from scripts.lab.systems.system import MERCURY, System, system
from tracer.clocks import aligned
from tracer.run import Run, read_run

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "trace"
LENET = replace(MODELS[0], warmup=1, steps=3)


def golden(mode: str) -> Run:
    return read_run(GOLDEN / f"timed_{mode}")


def figures_of(mode: str) -> dict[str, dict[str, float]]:
    run = golden(mode)
    found = captured_figures(run, aligned(run)[0])
    return {what: {name: figure.value for name, figure in of.items()} for what, of in found.items()}


def test_lengths_are_those_that_the_format_explains() -> None:
    """docs/trace-format.md says what they consist of."""
    beside = figures_of("zmq")[LENGTHS]
    sizes = {"push": 128, "confirmation": 120, "request": 128, "answer": 120}
    assert beside == {f"{n}, {w}": size for n, size in sizes.items() for w in ("least", "most")}
    beside = figures_of("mercury")[LENGTHS]
    assert {name.split(",")[0] for name in beside} == {"push", "answer"}
    assert beside["push, least"] == beside["answer, least"] == 28  # of one packet
    assert all(size % 28 == 0 for size in beside.values())


@pytest.mark.parametrize("mode", ["zmq", "mercury"])
def test_a_run_s_figures(mode: str) -> None:
    found = figures_of(mode)
    assert found[DATA]["to the server"] == pytest.approx(1.72432, rel=0.002)
    assert found[DATA]["to the worker"] == pytest.approx(1.72432, rel=0.002)
    assert found[DATA]["records"] == 4 * 8
    assert found[PHASES]["computation"] == found[OVERHEADS]["computation"]
    assert 0 < found[PHASES]["overlap"] < 100
    for kind in ("search", "update", "synchronisation"):
        assert found[OVERHEADS][kind] >= 0


def test_repeats_become_one_row_and_the_paper_is_beside_it() -> None:
    gathered = Gathered(LENET, shaped=True)
    for value in (13.0, 15.0):
        gathered.add(PHASES, "zmq", captures.FAST, {"computation": Figure(value, "ms")})
    rows = gathered.rows()
    (mine,) = (row for row in rows if row.system == "zmq")
    assert (mine.bench, mine.values) == ("captures", [13.0, 15.0])
    (paper,) = (
        row for row in rows if (row.system, row.what, row.metric) == (PAPER, mine.what, mine.metric)
    )
    assert (paper.values, paper.unit, paper.setting) == ([4.74], mine.unit, mine.setting)
    assert Gathered(LENET, shaped=False).setting(1e9).endswith(", but not shaped")


def test_what_a_turn_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of jobs that are captured runs already."""
    trained: list[tuple[float, bool]] = []

    def train(
        model: CapturedModel, system: System, rate: float, traces: Path | None = None
    ) -> Outcome:
        trained.append((rate, traces is not None))
        if traces is not None:
            traces.symlink_to(GOLDEN / "timed_zmq")
        worker: dict[str, Any] = {"begin": {"t": 1.0, "cpu_s": 1.0}, "end": {"t": 1.6, "cpu_s": 2}}
        return Outcome([worker, worker], {})

    monkeypatch.setattr(captures, "train", train)
    monkeypatch.setattr(captures, "privilege_missing", lambda: None)
    rows = list(captures.run([system("zmq", None), system("stock", "p")], [LENET], repeats=2))
    fast = [(captures.FAST, False), (captures.FAST, True)]
    slow = [(rate, True) for rate in (LENET.captured_at, *LENET.replayed_at)]
    assert trained == [*fast, *slow, *reversed(fast), *slow]  # each kind is first once
    assert {row.system for row in rows} == {"zmq", PAPER}
    assert all(len(row.values) == (1 if row.system == PAPER else 2) for row in rows)
    values = {(row.what.partition(": ")[2], row.setting, row.metric): row.median for row in rows}
    setting = str(captures.setting(captures.FAST))
    assert values[captures.COST, setting, "iteration, captured"] == pytest.approx(200)
    assert values[captures.COST, setting, "longer by"] == 0
    assert 50 < values[captures.COST, setting, "text of an event"] < 120
    replayed = {
        of: value for (_, of, metric), value in values.items() if metric == "iteration, replayed"
    }
    slowest, fastest = (str(captures.setting(rate)) for rate in (250e6, 2e9))
    shares = [value for (_, _, metric), value in values.items() if "in the capture" in metric]
    assert shares == [1.0] * len(LENET.replayed_at)
    with_that = "replayed with that computation / measured"
    for of in replayed.keys() - {str(captures.setting(LENET.captured_at))}:
        (plain,) = (v for (_, at, m), v in values.items() if (at, m) == (of, "replayed / measured"))
        assert [v for (_, at, m), v in values.items() if (at, m) == (of, with_that)] == [plain]
    assert len(replayed) == 1 + len(LENET.replayed_at)
    assert replayed[slowest] > 2 * replayed[fastest]
    monkeypatch.setattr(captures, "privilege_missing", lambda: "only root may")
    rows = list(captures.run([system("zmq", None)], [LENET], repeats=1))
    assert not any("replayed" in row.metric for row in rows)


def test_a_job_is_captured(tmp_path: Path) -> None:
    outcome = captures.train(LENET, system(MERCURY, None), captures.FAST, tmp_path / "traces")
    assert captures.step_ms(outcome, LENET) > 0
    run = read_run(tmp_path / "traces")
    assert (run.num_workers, run.num_servers, run.mode) == (2, 1, "mercury")
    table, _ = aligned(run)
    assert len(table) == 2 * 8 * LENET.steps
    assert all(result["losses"][0] > 0 for result in outcome.results)
