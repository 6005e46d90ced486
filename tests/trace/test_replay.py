"""Captured runs replayed: under their own conditions as recorded, under others as expected."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pslite_ext.forecast.model import ModelError
from tracer.errors import TraceError
from tracer.format.record import DEP_LIST, DEP_ONE, Note
from tracer.replay import Conditions, Recorded, recorded, replay, self_check
from tracer.replay.network import estimate
from tracer.round_trip import (
    MISSING,
    S_PULL_RECV,
    S_PULL_SEND,
    S_PUSH_RECV,
    S_PUSH_SEND,
    W_PULL_RECV,
    W_PULL_SEND,
    W_PUSH_RECV,
    W_PUSH_SEND,
    RoundTrips,
)
from tracer.run import Key, assemble
from tracer.synthetic import Plan, synthesize

PLAN = Plan(workers=2, servers=1, iterations=5)


def run_of(plan: Plan) -> Recorded:
    return recorded(assemble(synthesize(plan), "traces"))


@pytest.mark.parametrize(
    "plan",
    [
        PLAN,
        replace(PLAN, workers=4),
        replace(PLAN, workers=3, servers=2, jitter_us=500, slower_us=(0, 1000, 0)),
        replace(PLAN, servers=3, split_bytes=100000, bytes_per_us=125),
        replace(PLAN, bytes_per_us=0, latency_us=0),
        replace(PLAN, mode="mercury"),
        replace(PLAN, mode="mercury", workers=4, servers=2, ahead_us=(5000, -300)),
    ],
)
def test_a_replay_under_its_own_conditions_takes_as_long_as_the_recording(plan: Plan) -> None:
    was, replayed = self_check(run_of(plan))
    assert replayed == pytest.approx(was, rel=0.05)


def test_what_is_read_from_a_run() -> None:
    plan = replace(PLAN, servers=2, split_bytes=100000, workers=3, slower_us=(0, 700, 0))
    found = run_of(plan)
    assert found.names[:2] == ("conv0_weight", "conv0_bias")
    assert found.ready_s.shape == (4, 3, 8)  # the first iteration has none before it
    assert found.update_s == pytest.approx(plan.update_us / 1e6, rel=0.01)
    assert found.search_s == pytest.approx((plan.search_us + plan.turnaround_us) / 1e6, rel=0.01)
    assert [len(parts) for parts in found.shares] == [1, 1, 1, 1, 2, 1, 1, 1]
    assert found.network.latency_s == pytest.approx(50e-6, rel=0.05)
    assert found.network.connection == pytest.approx(1.25e9, rel=0.01)
    # The last layer's gradient is ready first; then a gap between any two.
    assert found.ready_s[:, 0, 7] == pytest.approx(plan.compute_us / 1e6)
    assert found.ready_s[:, 1, 7] == pytest.approx((plan.compute_us + 700) / 1e6)
    assert found.ready_s[:, 0, 0] == pytest.approx((plan.compute_us + 7 * plan.gap_us) / 1e6)


@pytest.mark.parametrize(("mode", "within"), [("zmq", 0.01), ("mercury", 0.12)])
def test_a_link_that_two_share_is_not_taken_for_two(mode: str, within: float) -> None:
    """Into the server, 100 bytes/us. Worker 1 begins when a half or a quarter of worker 0's is in.

    A trace does not say when a tensor's packets came between the first and the last.
    """
    handed = np.array([0, 5000, 30000, 32500])  # of both workers, in two iterations
    there = np.array([15050, 20050, 47550, 50050])  # 50 us of which are the latency
    times = np.full((8, 4), MISSING)
    times[W_PUSH_SEND], times[S_PULL_SEND], times[W_PULL_RECV] = handed, there + 100, there + 150
    if mode == "mercury":
        times[W_PUSH_RECV], times[S_PUSH_RECV], times[S_PUSH_SEND] = there - 50, handed + 50, there
        times[S_PULL_RECV], times[W_PULL_SEND] = there, there + 50
    else:
        times[S_PUSH_RECV], times[S_PUSH_SEND], times[W_PUSH_RECV] = there, there, there + 50
        times[W_PULL_SEND], times[S_PULL_RECV] = there + 50, there + 100
    none, size = np.zeros(4, np.int64), np.full(4, 1_000_000)
    table = RoundTrips(
        iteration=np.array([0, 0, 1, 1]),
        key=none,
        worker=np.array([0, 1, 0, 1]),
        server=none,
        times=times,
        push_bytes=size,
        pull_bytes=size,
        initialised=np.full(2, MISSING),
        keys={0: Key(0, "weight", 1_000_000, 0)},
        mode=mode,
        training="synchronous",
        workers=2,
        servers=1,
    )
    network = estimate(table)
    assert network.latency_s == pytest.approx(50e-6)
    assert network.bandwidth == pytest.approx(100e6, rel=within)
    assert network.connection == network.bandwidth


def test_other_conditions() -> None:
    found = run_of(replace(PLAN, bytes_per_us=125))

    def mean(**conditions: Any) -> float:
        return replay(found, Conditions(**conditions)).mean_s

    was = mean()
    assert mean(bandwidth=12.5e9) < was
    assert mean(bandwidth=12.5e6) > 2 * was
    assert mean(policy="mercury") < was
    many: dict[str, Any] = {"workers": 8, "bandwidth": 125e6}
    assert mean(**many) > 2 * was
    assert mean(**many, servers=8) < mean(**many, servers=2)
    assert mean(latency_s=0.01) > was + 0.03
    many["policy"] = "mercury"
    assert mean(**many, aggregate="switch") < mean(**many, aggregate="server")


def test_a_share_of_forward_computation_overlaps_with_the_sums() -> None:
    found = run_of(replace(PLAN, bytes_per_us=125))
    plain = replay(found, Conditions(policy="mercury", bandwidth=125e6)).mean_s
    with_forward = Conditions(policy="mercury", bandwidth=125e6, forward_share=0.33)
    assert replay(found, with_forward).mean_s < plain
    with pytest.raises(ModelError, match="share of forward computation must be from 0 to below 1"):
        replay(found, Conditions(forward_share=1.0))


def test_a_missing_rank_is_named() -> None:
    traces = synthesize(PLAN)
    for missing in ("worker 1", "server 0"):
        without = [t for t in traces if t.header.node != missing]
        with pytest.raises(TraceError, match=f"the trace of {missing} is missing"):
            recorded(assemble(without, "traces"))


def test_a_cycle_of_dependencies_is_named() -> None:
    traces = synthesize(PLAN)
    worker = traces[0].records
    rows = np.flatnonzero(worker.is_data & (worker.dep_kind == DEP_ONE))
    last = rows[-1]
    first = rows[-1]
    while worker.dep_kind[first] == DEP_ONE:  # back to the push that began this operation
        named = (
            (worker.key == worker.dep_key[first])
            & (worker.op_num == worker.dep_num[first])
            & (worker.node == worker.dep_node[first])
            & worker.is_data
        )
        first = np.flatnonzero(named)[0]
    worker.dep_kind[first] = DEP_ONE
    worker.dep_key[first] = worker.key[last]
    worker.dep_num[first] = worker.op_num[last]
    worker.dep_node[first] = worker.node[last]
    with pytest.raises(TraceError, match="depends on itself"):
        recorded(assemble(traces, "traces"))


def test_a_list_that_names_its_own_record_is_a_cycle() -> None:
    traces = synthesize(PLAN)
    worker = traces[0].records
    row = int(np.flatnonzero(worker.dep_kind == DEP_LIST)[-1])
    worker.lists.append(f"({worker.op_num[row]}-s0.)")
    worker.dep_num[row] = len(worker.lists) - 1
    with pytest.raises(TraceError, match="depends on itself"):
        recorded(assemble(traces, "traces"))


def test_what_cannot_be_replayed() -> None:
    with pytest.raises(TraceError, match="two whole iterations in a row"):
        run_of(replace(PLAN, iterations=1))
    with pytest.raises(TraceError, match="only synchronous"):
        run_of(replace(PLAN, training="asynchronous"))


def test_a_window_late_in_a_run_takes_no_more_room() -> None:
    traces = synthesize(PLAN)
    plain = recorded(assemble(traces, "traces"))
    for trace in traces:
        trace.records.op_num[trace.iteration() >= 0] += 4 * 10**8
        trace.notes.append(Note(0, f"from step {10**8}"))
    late = recorded(assemble(traces, "traces"))
    assert np.array_equal(late.iteration_s, plain.iteration_s)


def test_a_clock_that_stands_still() -> None:
    traces = synthesize(PLAN)
    for trace in traces:
        trace.records.time[:] = 1_700_000_000_000_000
        trace.notes = []
    with pytest.raises(TraceError, match="its clock is too coarse"):
        recorded(assemble(traces, "traces"))
