"""A measured iteration is held against what the model foretells for the same policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scripts.lab.benches.case import TCP_SHARE
from scripts.lab.benches.prediction import floor_s, predicted_s, while_rates_change
from scripts.lab.benches.speed import iteration, measured
from scripts.lab.systems.job import Outcome, Sample
from scripts.lab.systems.system import system
from scripts.lab.workloads.workload import load

BANDWIDTH = 1e9 / 8 * TCP_SHARE


def outcome(*times_s: float) -> Outcome:
    usage = {"t": 0.0, "cpu_s": 0.0, "sent": 0, "received": 0}
    worker: dict[str, dict[str, Any]] = {
        "begin": usage,
        "end": usage,
        "result": {"times_s": list(times_s)},
    }
    cpu = {"server0": 1.0}
    samples = {name: Sample(0.0, cpu, {}, 0.0) for name in ("begin", "end")}
    return Outcome([worker], samples)


def test_predictions_are_of_the_policy_that_a_system_has() -> None:
    job = load("vgg16").scaled(0.2).job()
    floor = floor_s(job, BANDWIDTH)
    predicted = [
        predicted_s(job, BANDWIDTH, f"mercury-{name}") for name in ("mercury", "fifo", "wfbp")
    ]
    assert predicted[0] == floor
    assert sorted(set(predicted), key=float) == predicted  # type: ignore[arg-type]
    assert predicted_s(job, BANDWIDTH, "stock") is None


def test_a_case_reports_predicted_over_measured() -> None:
    ours, stock = (
        iteration([system(name, "/stock")], ["vgg16"], ["network-bound"], rounds=3)[0]
        for name in ("mercury-fifo", "stock")
    )
    figures = ours.measure(outcome(2.0, 2.2, 2.1))
    predicted = figures["predicted time"].value
    assert figures["floor"].value < predicted
    assert figures["predicted / measured"].value == pytest.approx(predicted / 2.1)
    assert "predicted time" not in stock.measure(outcome(1.0, 1.0, 1.0))


def test_a_measured_profile_keeps_its_own_ratio(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(
        '{"layers": [{"name": "a_weight", "bytes": 440000000, "bp_s": 0.5, "fp_s": 0.3}]}'
    )
    (case,) = measured([system("zmq", None)], path, rounds=2)
    assert case.what == "mine x 0.25, as measured: 0.2 s of computation"
    figures = case.measure(outcome(1.0, 1.0))
    assert figures["floor"].value == pytest.approx(0.2 + 110e6 / BANDWIDTH)


def test_iterations_while_rates_change_are_as_long_as_the_rate_of_the_moment_has_them() -> None:
    def iteration_s(rate: float) -> float:
        return 1 / rate

    assert while_rates_change(iteration_s, iter([2.0, 4.0]), 10.0, 8) == pytest.approx(0.5)
    # Ten in the first 5 s, ten of 0.25 s after that.
    assert while_rates_change(iteration_s, iter([2.0, 4.0]), 5.0, 20) == pytest.approx(7.5 / 20)
