"""Clocks: a planted offset is found again, within the uncertainty that is stated."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trace.synthetic_runs import plain, plans, run_of
from tracer.clocks import Bounds, aligned, doubts, tightest
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
    drift(run, "server 0", 3000)
    _, alignment = aligned(run)
    clock = alignment.clocks["server 0"]
    assert alignment.consistent
    assert len(clock.add_us) > 1
    inside = (server.time >= clock.at_us[0]) & (server.time <= clock.at_us[-1])
    off = server.time[inside] + clock.add(server.time)[inside] - true[inside]
    assert np.abs(off).max() <= clock.within_us + 100


def drift(run: Run, node: str, ppm: int) -> None:
    """Makes a clock run faster, from where it was right."""
    trace = next(trace for trace in run.traces if trace.header.node == node)
    time = trace.records.time
    since = time - time[time > 0].min()
    trace.records.time = np.where(time > 0, time + since * ppm // 1_000_000, 0)
    trace.notes = [note for note in trace.notes if not note.text.startswith("clock")]


def end_at(run: Run, worker: int, iteration: int) -> None:
    trace = run.workers[worker]
    kept = trace.records.take(trace.iteration() < iteration)
    run.workers[worker] = replace(trace, records=kept, notes=[])


@pytest.mark.parametrize("ahead_us", [5_000, 5_000_000])
@pytest.mark.parametrize("short", [None, 0, 1])
def test_drifting_clocks_are_followed_where_a_file_is_shorter(
    ahead_us: int, short: int | None
) -> None:
    plan = Plan(workers=3, iterations=60, compute_us=4_000_000, ahead_us=(0, ahead_us))
    run = run_of(replace(plan, clock_notes=False))
    drift(run, "server 0", 20)
    if short is not None:
        end_at(run, short, 40)
    table, alignment = aligned(run)
    assert alignment.consistent
    assert doubts(run, alignment) == []
    for sent, received in ((0, 4), (5, 1), (2, 6), (7, 3)):
        known = table.has(sent, received)
        delay = table.times[received][known] - table.times[sent][known]
        assert delay.min() >= -100  # a clock drifts by 80 us in an iteration
    worker = alignment.clocks["worker 1"]
    assert np.abs(np.asarray(worker.add_us) + ahead_us).max() <= worker.within_us + 100


def test_where_the_first_node_is_missing_another_stands_in() -> None:
    run = run_of(Plan(workers=3, iterations=60, compute_us=4_000_000, clock_notes=False))
    drift(run, "server 0", 20)
    end_at(run, 0, 20)
    server = aligned(run)[1].clocks["server 0"]
    # Later, worker 0's clock is taken to be as far from worker 1's as it was.
    gained = server.add_us[0] - server.add_us[-1]
    assert gained == pytest.approx(20e-6 * (server.at_us[-1] - server.at_us[0]), abs=200)


@pytest.mark.parametrize("end", [0, 20])
def test_a_leader_without_records_is_known_by_its_host_s_sums(end: int) -> None:
    plan = Plan(workers=3, servers=2, iterations=60, compute_us=4_000_000, clock_notes=False)
    run = run_of(plan)
    run.servers[1].notes.append(Note(0, "leader worker 0"))
    drift(run, "server 0", 20)
    end_at(run, 0, end)
    _, alignment = aligned(run)
    assert doubts(run, alignment) == []
    server = alignment.clocks["server 0"]
    gained = server.add_us[0] - server.add_us[-1]
    assert gained == pytest.approx(20e-6 * (server.at_us[-1] - server.at_us[0]), abs=200)
    assert np.abs(alignment.clocks["worker 1"].add_us).max() <= 200


def shortest_by_hand(bounds: Bounds) -> list[list[float]]:
    """Of all ways from each node to each, by trying every node in between."""
    size = range(bounds.nodes)
    path = [[0.0 if one == two else math.inf for two in size] for one in size]
    for one, two, most in zip(bounds.source, bounds.target, bounds.most):
        path[one][two] = min(path[one][two], float(most))
    for through in size:
        for one in size:
            for two in size:
                path[one][two] = min(path[one][two], path[one][through] + path[through][two])
    return path


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_bounds_tell_what_all_ways_through_them_tell(data: st.DataObject) -> None:
    """Between workers, servers and the scheduler, which is the last node."""
    workers, servers = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 3))
    nodes = workers + servers + 1
    ends = [(w, workers + s) for w in range(workers) for s in range(servers)]
    ends += [(place, nodes - 1) for place in range(nodes - 1)]
    width = st.integers(data.draw(st.sampled_from((-5, 0, 10))), 100)
    clock = data.draw(st.lists(st.integers(-50, 50), min_size=nodes, max_size=nodes))
    edges = [
        (source, target, clock[target] - clock[source] + data.draw(width))
        for one, two in ends
        for source, target in ((one, two), (two, one))
        if data.draw(st.integers(0, 3))
    ]
    columns = np.asarray(edges, np.int64).reshape(-1, 3)
    longest = 2 * (min(workers, servers) + 1)
    source, target, most = columns.T
    bounds = Bounds(nodes, source, target, most.astype(float), longest)
    reference = data.draw(st.integers(0, nodes - 1))
    path = shortest_by_hand(bounds)
    ahead, within = tightest(bounds, reference)
    if any(path[node][node] < 0 for node in range(nodes)):
        assert ahead is None
        return
    assert ahead is not None
    for node in range(nodes):
        most, least = path[reference][node], -path[node][reference]
        assert within[node] == (most - least) / 2
        assert not np.isfinite(within[node]) or ahead[node] == (most + least) / 2


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
