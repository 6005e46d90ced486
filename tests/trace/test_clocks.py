"""Clocks: a planted offset is found again, within the uncertainty that is stated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trace.synthetic_runs import plain, plans, run_of
from tracer.clocks import aligned, doubts
from tracer.format.record import CODE, Note
from tracer.run import Run, assemble
from tracer.synthetic import Plan

ROUNDING_US = 1.0


def planted(plan: Plan, run: Run) -> dict[str, int]:
    """What should be added to each node's times to get the first node's."""
    first = run.traces[0].header
    base = plan.ahead(first.role, first.rank)
    return {t.header.node: base - plan.ahead(t.header.role, t.header.rank) for t in run.traces}


@given(plan=st.one_of(plans(), plans(mode="mercury")))
@settings(max_examples=60, deadline=None)
def test_offsets_are_recovered(plan: Plan) -> None:
    run = run_of(plan)
    _, alignment = aligned(run)
    assert alignment.consistent
    assert alignment.notes_agree
    for node, add in planted(plan, run).items():
        clock = alignment.clocks[node]
        # A server that holds no tensor exchanges nothing, so that only its note tells.
        if clock.known:
            assert abs(clock.add_us[0] - add) <= clock.within_us + ROUNDING_US
        else:
            assert not plan.clock_notes


@given(plan=plans())
@settings(max_examples=15, deadline=None)
def test_notes_can_only_make_it_more_exact(plan: Plan) -> None:
    with_notes, without = (
        aligned(run_of(replace(plan, clock_notes=notes)))[1].clocks for notes in (True, False)
    )
    for node, clock in with_notes.items():
        if without[node].known:
            assert clock.within_us <= without[node].within_us + ROUNDING_US


def test_nothing_arrives_before_it_is_sent() -> None:
    plan = Plan(workers=3, servers=2, iterations=3, ahead_us=(0, 90_000, -7, 12345, -99999))
    table, _ = aligned(run_of(plan))
    for sent, received in ((0, 4), (5, 1), (2, 6), (7, 3)):
        # Offsets are rounded to whole microseconds, and so were the times.
        assert (table.times[received] - table.times[sent]).min() >= -2


def test_drifting_clocks_are_followed() -> None:
    plan = Plan(iterations=60, latency_us=20, jitter_us=500)
    run = run_of(plan)
    server = run.servers[0].records
    true = server.time.copy()
    start = int(true[true > 0].min())
    server.time = np.where(true > 0, true + (true - start) * 300 // 100_000, 0)  # 0.3 per cent
    run.servers[0].notes = [n for n in run.servers[0].notes if not n.text.startswith("clock")]
    _, alignment = aligned(run)
    clock = alignment.clocks["server 0"]
    assert alignment.consistent
    assert len(clock.add_us) > 1
    inside = (server.time >= clock.at_us[0]) & (server.time <= clock.at_us[-1])
    off = server.time[inside] + clock.add(server.time)[inside] - true[inside]
    assert np.abs(off).max() <= clock.within_us + 100


def test_a_wrong_note_is_overruled_by_the_messages() -> None:
    run = run_of(Plan(iterations=2))
    run.servers[0].notes.append(Note(0, "clock 1 0 add_us 5000000 within_us 10"))
    _, alignment = aligned(run)
    assert not alignment.notes_agree
    assert abs(alignment.clocks["server 0"].add_us[0]) <= alignment.clocks["server 0"].within_us


def test_files_without_their_other_end_keep_their_times() -> None:
    run = run_of(Plan(iterations=2, clock_notes=False, ahead_us=(0, 500)))
    alone = assemble(run.workers)
    table, alignment = aligned(alone)
    assert not alignment.clocks["worker 1"].known
    assert table.has(0, 3).all()


@pytest.mark.parametrize("mode", ["zmq", "mercury"])
def test_plain_clocks_need_no_correction(mode: str) -> None:
    run = run_of(plain(Plan(iterations=2, mode=mode)))
    clocks = aligned(run)[1].clocks
    assert all(abs(clock.add_us[0]) <= clock.within_us for clock in clocks.values())


def test_one_wrong_time_does_not_make_all_clocks_unknown() -> None:
    plan = Plan(workers=2, servers=1, iterations=40, ahead_us=(0, 1500, -700), clock_notes=False)
    run = run_of(plan)
    server = run.servers[0].records
    server.time[np.flatnonzero(server.operation == CODE["Push_Recv_Server"])[150]] -= 60_000_000
    _, alignment = aligned(run)
    assert not alignment.consistent
    assert len(doubts(run, alignment)) == 1
    for node, add in planted(plan, run).items():
        clock = alignment.clocks[node]
        assert clock.known
        assert all(abs(one - add) <= clock.within_us + ROUNDING_US for one in clock.add_us)
