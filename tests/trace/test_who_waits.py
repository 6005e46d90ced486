"""For whom a job waits: windows of packets, hosts, several Trainers, no sums, losses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.trace.synthetic_runs import run_of, two_hosts
from tracer.analysis import critical, message_parts, overheads, phases, sizes, stragglers
from tracer.clocks import aligned
from tracer.format.record import OPERATIONS, Note
from tracer.format.step_numbers import of_pushes
from tracer.report.advice import advise
from tracer.report.waits import waits
from tracer.round_trip import MISSING, S_PUSH_SEND, W_PULL_RECV, W_PUSH_RECV, round_trips
from tracer.run import assemble
from tracer.synthetic import Plan, PlannedTensor

SLOWER_US = 20_000
# Of a push, a server lets 100 KB through before all have begun.
WINDOW = Plan(
    mode="mercury", iterations=5, tensors=(PlannedTensor("big", 2_000_000),),
    window_bytes=100_000, slower_us=(0, SLOWER_US),
)  # fmt: skip
GAN = (PlannedTensor("critic", 1000), PlannedTensor("generator", 2000, every=4))


def test_the_slow_worker_is_late_though_all_last_packets_come_together() -> None:
    table = round_trips(run_of(WINDOW))
    table = table.take(table.iteration > 0)  # before, worker 0 brings in the values
    last = stragglers.last_ones(table)
    assert set(last["worker"].tolist()) == {1}
    assert set(last["cost_us"].tolist()) == {SLOWER_US}
    found = message_parts.parts_of_each(table)
    waited, late = (found["worker"] == worker for worker in (0, 1))
    assert found["peers_us"][waited].min() >= SLOWER_US
    assert found["sender_queue_us"][waited].max() <= found["sender_queue_us"][late].min()


def test_the_critical_path_goes_on_with_who_began_last() -> None:
    table = round_trips(run_of(WINDOW))
    table.times[[[W_PUSH_RECV], [S_PUSH_SEND]], table.worker == 0] += 300  # its last one is last
    path = critical.path(table)
    assert path["us"].min() >= 0
    computing = path["what"] == critical.COMPUTATION
    assert set(path["node"][computing].tolist()) == {"worker 1"}
    assert set(path["us"][computing].tolist()) == {WINDOW.compute_us + SLOWER_US}
    last_us = np.diff(np.unique(path["begin_us"][path["what"] == "last sum on the wire"]))
    assert np.array_equal(last_us, [path["us"][path["iteration"] == i].sum() for i in range(1, 5)])


def test_a_leader_is_not_blamed_for_its_neighbour() -> None:
    run = assemble(two_hosts(slower_us=(0, SLOWER_US)))
    table, _ = aligned(run)
    last = stragglers.last_ones(table.take(table.iteration > 0))
    assert set(last["worker"].tolist()) == {1}
    assert set(last["server"].tolist()) == {0}
    assert last["cost_us"].min() >= 0.9 * SLOWER_US
    path = critical.path(table)
    computing = path["node"][path["what"] == critical.COMPUTATION]
    assert set(computing.tolist()) == {"worker 1"}
    assert critical.WITHIN[1] in path["what"]
    assert path["us"].min() >= 0
    gain = advise(run, table).values["gains"]["worker 1 as fast as the others"]
    assert gain == pytest.approx(0.7, abs=0.1)
    own = assemble(two_hosts(slower_us=(SLOWER_US,)))
    leaders = stragglers.last_ones(round_trips(own))
    assert set(leaders["worker"].tolist()) == {0}


@pytest.mark.parametrize("mode", ["zmq", "mercury"])
@pytest.mark.parametrize("tensors", [GAN, GAN[::-1]])
def test_a_key_that_is_pushed_less_often(mode: str, tensors: tuple[PlannedTensor, ...]) -> None:
    """Its pushes are of the steps in which they are, at both ends."""
    run = run_of(Plan(mode=mode, iterations=10, tensors=tensors, servers=2))
    table = round_trips(run)
    assert table.has(*range(8)).all()
    generator = table.key == tensors.index(GAN[1])
    found = phases.phases(table)
    assert found["phase1_us"].min() >= 0
    assert 0 <= found["overlap_ratio"].min() <= found["overlap_ratio"].max() <= 1
    assert {*table.iteration[~generator].tolist()} == {*range(10)}
    # If it comes first in its step, and the step's other push before its answer.
    assert {*table.iteration[generator].tolist()} == {0, 4, 8}
    worker = run.workers[1]
    worker.records = worker.records.take(worker.iteration() >= 5)
    worker.notes.append(Note(0, "from step 5"))
    assert {*assemble([worker]).workers[0].iteration().tolist()} <= {*range(5, 10)}


def test_steps_by_the_order_of_pushes() -> None:
    def ahead(*pushes: tuple[int, int]) -> list[int]:
        key, number = np.array(pushes, np.int64).T
        at = np.arange(len(pushes)) * 10
        found: list[int] = of_pushes(key, number, at, at + 5).ahead.tolist()
        return found

    assert ahead((0, 0), (1, 0), (1, 1), (0, 1), (0, 2), (1, 2)) == []  # whatever the order
    assert ahead((0, 0), (1, 0), (0, 99_999), (0, 1), (1, 1), (0, 2), (1, 2)) == []  # a damaged one
    assert ahead((0, 0), (1, 0), (0, 1), (0, 2), (1, 1)) == [0, 0, 0, 0, 1]
    assert ahead((0, 5), (0, 7), (1, 2)) == [0, 0, 5]  # the first of them, and one that is lost


def test_without_sums_nobody_waits_for_others() -> None:
    run = run_of(Plan(training="asynchronous", slower_us=(0, SLOWER_US)))
    table = round_trips(run)
    assert [len(found) for found in stragglers.section(table).tables] == [0, 0]
    assert len(overheads.synchronisation(table).overall) == 0
    seen = waits(table)
    assert seen is not None
    assert (seen.slow_worker, seen.slow) == (None, 0)


def test_updates_go_on_without_a_worker_that_was_lost() -> None:
    plan = Plan(workers=3, iterations=6)
    table = round_trips(run_of(plan))
    there = table.take((table.worker != 2) | (table.iteration < 3))
    found = overheads.update(there).overall
    assert len(found) == plan.iterations * len(plan.tensors)
    assert set(found["us"].tolist()) == {plan.update_us}


def test_iterations_of_which_records_are_missing_are_left_out() -> None:
    table = round_trips(run_of(Plan(workers=2, iterations=5)))
    found = phases.phases(table)
    lost = np.flatnonzero((table.worker == 1) & (table.iteration == 2))
    last = lost[table.times[W_PULL_RECV, lost].argmax()]
    table.times[W_PULL_RECV, last] = MISSING
    # What follows it has no beginning then.
    known = (found["worker"] != 1) | ~np.isin(found["iteration"], (2, 3))
    for name, values in phases.phases(table).columns.items():
        assert np.array_equal(values, found[name][known])
    table.times[W_PULL_RECV, table.key == table.key[last]] = MISSING
    assert len(phases.phases(table)) == len(found)  # a key that is never pulled


def test_a_tensor_in_packets_is_one_message_each_way() -> None:
    run = run_of(replace(WINDOW, iterations=2))
    found = sizes.per_key_and_operation(sizes.training_columns(run), run)
    names = [OPERATIONS[code] for code in (0, 3)]
    assert found["operation"] == names
    assert found["count"].tolist() == [4, 4]
    assert found["min_bytes"].min() > 2_000_000
