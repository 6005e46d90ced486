"""What a report opens with: of made-up jobs whose right answer is known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.trace.synthetic_runs import run_of
from tracer.analysis.phases import phases
from tracer.clocks import aligned
from tracer.report.advice import Advice, advise
from tracer.report.waits import Waits, waits
from tracer.synthetic import Plan

PLAN = Plan(workers=3, iterations=6, bytes_per_us=1250)
# The links and the servers need next to nothing.
COMPUTES = replace(PLAN, bytes_per_us=100_000, compute_us=30_000, update_us=20, search_us=10)
MODES = pytest.mark.parametrize("mode", ["zmq", "mercury"])


def seen(plan: Plan) -> Waits:
    table = aligned(run_of(plan))[0]
    found = waits(table)
    assert found is not None
    assert found.iteration_us == phases(table)["whole_us"].mean()
    assert found.computation + found.links + found.updates + found.slow == pytest.approx(1)
    return found


def advice_on(plan: Plan) -> Advice:
    run = run_of(plan)
    return advise(run, aligned(run)[0])


@MODES
def test_a_slow_worker(mode: str) -> None:
    plan = replace(COMPUTES, mode=mode, slower_us=(0, 15_000, 0))
    found = seen(plan)
    assert found.slow_worker == 1
    assert found.slow == pytest.approx(15_000 / found.iteration_us, rel=0.05)
    advice = advice_on(plan)
    assert "waiting for worker 1, slower than the others" in advice.waits
    assert advice.helps.startswith("By the simulator, worker 1 as fast as the others would help")
    assert advice.values["gains"]["worker 1 as fast as the others"] == pytest.approx(0.32, abs=0.03)
    assert "the simulator fits this run" in advice.trust


@MODES
def test_links_that_are_too_slow(mode: str) -> None:
    plan = replace(PLAN, mode=mode, bytes_per_us=12)
    found = seen(plan)
    assert found.slow_worker is None
    assert found.links > 0.9
    advice = advice_on(plan)
    assert " is 9" in advice.waits.partition(",")[0]
    assert advice.waits.partition(",")[0].endswith("% waiting for links")
    gains = advice.values["gains"]
    assert gains["links twice as fast"] == pytest.approx(found.links / 2, abs=0.03)
    assert gains["half the bytes"] == pytest.approx(gains["links twice as fast"], abs=0.03)
    assert advice.helps.startswith(("By the simulator, links twice", "By the simulator, half"))


@MODES
def test_nothing_helps_who_computes_all_the_time(mode: str) -> None:
    plan = replace(COMPUTES, mode=mode, jitter_us=300)
    found = seen(plan)
    assert (found.slow_worker, found.slow) == (None, 0)
    assert found.computation > 0.95
    advice = advice_on(plan)
    assert advice.helps.startswith("Nothing that the simulator knows would make an iteration 2%")
    assert max(advice.values["gains"].values()) < 0.02


def test_servers_that_take_long() -> None:
    advice = advice_on(replace(COMPUTES, update_us=20_000))
    assert "% the servers' updates" in advice.waits
    assert advice.helps.startswith("By the simulator, updates that take no time would help most")


def test_what_cannot_be_replayed_says_why() -> None:
    advice = advice_on(replace(COMPUTES, training="asynchronous"))
    assert "% computation" in advice.waits
    assert "cannot be replayed" in advice.helps
    assert "asynchronous" in advice.helps
    assert advice.trust == "So only what was measured is to be trusted here."
    alone = advice_on(replace(PLAN, workers=1))
    assert "waiting for worker" not in alone.waits


def test_no_iteration_is_whole() -> None:
    run = run_of(replace(PLAN, iterations=1))
    table = aligned(run)[0]
    advice = advise(run, table.take(table.key < 0))  # as of a job that was stopped
    assert advice.waits.startswith("What this job waits for is not known")
    assert "cannot be replayed" in advice.helps


def test_a_simulator_that_does_not_fit_foretells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracer.report.advice.ERROR_MOST", -1.0)
    advice = advice_on(PLAN)
    assert advice.helps.endswith("because the simulator does not fit this run.")
    assert "do not rely on" in advice.trust
