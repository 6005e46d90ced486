"""Prophet: the model against the transport's algorithm, against other policies, and its file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pslite_ext import prophet_profile
from pslite_ext.forecast.model import Job, Layer, ModelError, predict
from pslite_ext.forecast.model.job_file import find_job
from pslite_ext.forecast.model.papers import predicted
from pslite_ext.forecast.model.sweep import sweep
from pslite_ext.forecast.model.zoo import known_job

_core = pytest.importorskip("pslite_ext._core")

# Whole numbers, so that both sides compute exactly the same sums.
layers = st.builds(
    Layer,
    st.just("layer"),
    st.integers(1, 2000),
    st.sampled_from([0, 0, 0, 1, 300, 900]),
    st.integers(0, 500),
)
jobs = st.lists(layers, min_size=1, max_size=20).map(lambda made: Job(tuple(made)))


@settings(max_examples=150, deadline=None)
@given(jobs, st.integers(0, 200))
def test_the_model_and_the_transport_plan_alike(job: Job, startup: int) -> None:
    line = predict(job, 1.0, "prophet", startup_s=startup)
    plan = _core.prophet_plan(list(job.bp_end), list(job.bytes), startup)
    assert plan == list(line.push_start)


def test_a_plan_of_what_is_no_number_is_refused() -> None:
    assert _core.prophet_plan([], [], 0.0) == []
    with pytest.raises(ValueError, match="gradient 1 has a time"):
        _core.prophet_plan([1.0, float("nan")], [1.0, 1.0], 0.0)
    with pytest.raises(ValueError, match="2 production times, but 1 transfers"):
        _core.prophet_plan([1.0, 2.0], [1.0], 0.0)


# --- against other policies, with exact predictions and a startup time --------------------------

startups = st.integers(1, 100)
WHOLE = {"partition_bytes": 1e9}  # each gradient is one message, as Prophet's are


@settings(max_examples=100, deadline=None)
@given(jobs, startups, st.sampled_from([1.0, 2e9, 64e9]))
def test_the_most_urgent_gradient_is_never_pushed_later(
    job: Job, startup: int, credit: float
) -> None:
    prophet = predict(job, 1.0, "prophet", startup_s=startup).push_end[0]
    for policy, options in (("p3", {}), ("bytescheduler", {"credit_bytes": credit})):
        for cut in ({}, WHOLE):
            other = predict(job, 1.0, policy, startup_s=startup, **options, **cut)
            assert prophet <= other.push_end[0] + 1e-9, policy


@settings(max_examples=100, deadline=None)
@given(jobs, startups)
def test_no_slower_where_every_block_takes_all_that_is_ready(job: Job, startup: int) -> None:
    """And where the others, too, pay a startup for each gradient: one on its way at a time."""
    moments = np.unique(job.bp_end)
    longest = max(job.bytes[job.bp_end == m].sum() + startup for m in moments)
    gap = min(np.diff(moments), default=longest)
    rate = 1.01 * float(longest / gap)  # as fast as it takes
    startup_s = startup / rate
    prophet = predict(job, rate, "prophet", startup_s=startup_s).iteration_s
    for policy, options in (("p3", {}), ("bytescheduler", {"credit_bytes": 1.0})):
        other = predict(job, rate, policy, startup_s=startup_s, **options, **WHOLE)
        assert prophet <= other.iteration_s * (1 + 1e-9), policy


@settings(max_examples=100, deadline=None)
@given(jobs, st.integers(0, 100), st.integers(1, 300))
def test_what_blocks_cost_beside_the_best_schedule(job: Job, startup: int, piece: int) -> None:
    """Each block's startup and what is left idle at its end; and no schedule beats Mercury's."""
    moments = len(np.unique(job.bp_end))
    best = predict(job, 1.0, "mercury").iteration_s
    prophet = predict(job, 1.0, "prophet", startup_s=startup, partition_bytes=piece)
    most = moments * (startup + piece) + piece  # a sum comes back a piece later
    assert best <= prophet.iteration_s <= best + most


def rates_up_to_3(job: Job, count: int) -> list[float]:
    """Bandwidths up to three times the one that balances computation and communication."""
    return [3 * n / count * float(job.bytes.sum()) / job.compute_s for n in range(1, count + 1)]


def check_never_behind(job: Job, startup: float, rates: list[float]) -> None:
    times = sweep(job, rates, ["prophet", "p3", "bytescheduler"], startup_s=startup).iteration_s
    for other in ("p3", "bytescheduler"):
        assert (times["prophet"] <= times[other] * (1 + 1e-9)).all(), other


BENCH_MODELS = pytest.mark.parametrize(("model", "steps"), [("resnet50", 13), ("resnet18", 8)])


@pytest.mark.parametrize("startup", [1e-4, 3e-4, 1e-3])
@BENCH_MODELS
def test_never_behind_on_what_the_bench_trains(model: str, steps: int, startup: float) -> None:
    job = known_job(model).in_steps(steps)
    check_never_behind(job, startup, rates_up_to_3(job, 300))


@pytest.mark.parametrize("startup", [1e-4, 3e-4, 1e-3])
@BENCH_MODELS
def test_hardly_behind_the_best_tuning(model: str, steps: int, startup: float) -> None:
    job = known_job(model).in_steps(steps)
    rates = rates_up_to_3(job, 300)
    tuned = {"partition_bytes": 256 << 10, "credit_bytes": 1 << 20, "startup_s": startup}
    best = sweep(job, rates, ["bytescheduler"], **tuned).iteration_s["bytescheduler"]
    prophet = sweep(job, rates, ["prophet"], startup_s=startup).iteration_s["prophet"]
    assert (prophet <= best * 1.015).all()


@pytest.mark.parametrize("startup", [1e-4, 3e-4])
@pytest.mark.parametrize("steps", [4, 13])
@pytest.mark.parametrize(
    "model", ["vgg16", "vgg19", "alexnet", "inception_v3", "resnet152", "bert_base"]
)
def test_never_behind_on_other_models_in_steps(model: str, steps: int, startup: float) -> None:
    job = known_job(model).in_steps(steps)
    check_never_behind(job, startup, rates_up_to_3(job, 30))


def test_never_behind_in_the_paper_s_table() -> None:
    """ResNet-50 in 13 steps, startup 0.3 ms, 1 to 10 Gbit/s: samples a second."""
    speeds = predicted()
    for other in ("bytescheduler", "p3"):
        for ours, theirs in zip(speeds["prophet"], speeds[other]):
            assert ours >= theirs * (1 - 1e-9), other


def test_where_algorithm_1_loses() -> None:
    """By search and by hand: not the best of schedules, not even always of these three.

    A piece that fits into no gap leaves the link idle until backward is over; and a window of
    several messages hides the startup times that Prophet pays for each block.
    """
    idle = Job((Layer("first", 1, 10, 0), Layer("large", 20, 0, 0)))
    often = Job((Layer("a", 10, 4, 0), Layer("b", 10, 4, 0), Layer("c", 10, 0, 0)))
    for job, startup, piece in ((idle, 1, 1e9), (often, 2, 1)):
        cut = {"startup_s": startup, "partition_bytes": piece}
        prophet = predict(job, 1.0, "prophet", **cut)
        other = predict(job, 1.0, "bytescheduler", **cut, credit_bytes=9e9)
        assert prophet.push_end[0] <= other.push_end[0]
        assert prophet.iteration_s > other.iteration_s


# --- the file -----------------------------------------------------------------------------------


def test_a_profile_s_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "profile"
    assert prophet_profile.read("") == prophet_profile.read(str(path)) == ""
    text = "# Prophet profile; forward 9000 us\n# key ...\n7 40 0 3000 a weight\n8 80 -1 0 b\n"
    prophet_profile.write(str(path), text)
    assert prophet_profile.read(str(path)) == text
    job = find_job(str(path))
    assert [layer.name for layer in job.layers] == ["a weight", "b"]
    assert list(job.bytes) == [40, 80]
    assert list(job.bp_end) == pytest.approx([0.003, 0])
    assert job.compute_s == pytest.approx(0.012)
    prophet_profile.write(str(path), "")
    assert prophet_profile.read(str(path)) == text
    at_once = tmp_path / "at once"
    at_once.write_text("# Prophet profile; forward 50000 us\n0 40 0 0 x\n1 80 0 0 y\n")
    assert list(find_job(str(at_once)).after_pull_s) == pytest.approx([0.025, 0.025])
    assert capsys.readouterr().err == ""


def test_a_file_that_is_no_profile_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "notes"
    path.write_text("buy milk\n")
    assert prophet_profile.read(str(path)) == ""
    assert "is not a Prophet profile" in capsys.readouterr().err
    prophet_profile.write(str(path), "# Prophet profile\n")
    assert path.read_text() == "buy milk\n"
    assert prophet_profile.read(str(tmp_path)) == ""
    assert "cannot be read" in capsys.readouterr().err
    assert prophet_profile.read("x" * 300) == ""
    assert "cannot be read" in capsys.readouterr().err
    for nowhere in (str(tmp_path / "none" / "profile"), "/", "x" * 300):
        prophet_profile.write(nowhere, "# Prophet profile\n")
        assert "cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "; forward x us\n1 2 3 4 n\n", "; forward 1 us\n1 2 3\n"])
def test_a_broken_profile_is_no_job(text: str, tmp_path: Path) -> None:
    path = tmp_path / "profile"
    path.write_text("# Prophet profile" + text)
    with pytest.raises(ModelError, match="is not a whole Prophet profile"):
        find_job(str(path))
