"""The analysis gives exactly what was planted, and what the definitions say in other words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trace import overheads_reference as reference
from tests.trace.figure_8 import PHASES, WAIT_US, figure_8
from tests.trace.synthetic_runs import SMALL, plain, plans, run_of
from tracer.analysis import (
    balance,
    compare,
    critical,
    exposed,
    inversion,
    message_parts,
    overheads,
    phases,
    prophet,
    sections,
    sizes,
    steps,
    stragglers,
)
from tracer.clocks import aligned
from tracer.format.record import COLUMNS, Note, Records
from tracer.report.figures import spread
from tracer.round_trip import MISSING, S_PUSH_RECV, W_PUSH_SEND, RoundTrips, round_trips
from tracer.run import assemble, read_run
from tracer.synthetic import Plan, PlannedTensor
from tracer.table import Table

PLAN = Plan(workers=3, servers=2, iterations=5, jitter_us=900, slower_us=(0, 0, 1500))
TWO = (PlannedTensor("urgent", 1000), PlannedTensor("bulk", 50_000))


def table_of(plan: Plan) -> RoundTrips:
    return round_trips(run_of(plan))


def all_equal(values: np.ndarray, expected: int) -> bool:  # type: ignore[type-arg]
    return len(values) > 0 and set(np.asarray(values).tolist()) == {expected}


@given(plan=plans())
@settings(max_examples=40, deadline=None)
def test_planted_overheads_come_back_exactly(plan: Plan) -> None:
    """Even with clocks that disagree, for none of these looks across nodes."""
    found = {s.kind: s for s in overheads.overheads(aligned(run_of(plan))[0])}
    assert all_equal(found["search"].overall["us"], plan.search_us)
    assert all_equal(found["update"].overall["us"], plan.update_us)
    computation = found["computation"].overall
    last = (len(plan.tensors) - 1) * plan.gap_us + plan.compute_us
    for worker in range(plan.workers):
        spent = computation["us"][computation["worker"] == worker] - last - plan.slower(worker)
        assert len(spent) == plan.iterations
        assert spent.min() >= 0
        assert spent.max() <= plan.jitter_us


@given(plan=plans(training="asynchronous"))
@settings(max_examples=20, deadline=None)
def test_without_synchronisation_update_is_each_worker_s_own(plan: Plan) -> None:
    run = run_of(plan)
    found = overheads.update(round_trips(run)).overall
    assert all_equal(found["us"], plan.update_us)
    assert len(found) == len(reference.overheads(run, asynchronous=True)["update"])
    server = run.servers[0].records
    confirmations = (server.operation == 5) & (server.op_num >= 2)
    assert set(server.d_time[confirmations].tolist()) <= {plan.update_us}


@given(plan=plans())
@settings(max_examples=40, deadline=None)
def test_definitions_in_other_words(plan: Plan) -> None:
    run = run_of(plain(plan))
    table = round_trips(run)
    expected = reference.overheads(run)
    for samples in overheads.overheads(table):
        assert sorted(samples.overall["us"].tolist()) == expected[samples.kind], samples.kind
    found = phases.phases(table)
    three = [found[f"phase{n}_us"].tolist() for n in (1, 2, 3)]
    assert sorted(zip(*three)) == reference.phases(run)


def test_synchronisation_is_the_planted_skew() -> None:
    """Bytes that take no time: everybody starts together, and the slower worker comes later."""
    plan = Plan(workers=3, servers=1, iterations=4, bytes_per_us=0, slower_us=(0, 250, 900))
    table = table_of(plan)
    table = table.take(table.iteration > 0)  # worker 0 brings in the values and begins later
    found = overheads.synchronisation(table).overall
    assert all_equal(found["us"], 900)
    last = stragglers.per_worker(stragglers.last_ones(table), 3)
    assert list(last["times_last"]) == [0, 0, 3 * 8]
    assert all_equal(np.asarray(last["mean_cost_us"][2:]), 900 - 250)


def test_an_update_is_known_where_all_who_push_to_a_server_have() -> None:
    """Of the workers of a host, only one pushes to other hosts' servers."""
    table = table_of(replace(PLAN, jitter_us=0))
    beside = table.take(table.worker != 1)
    found = overheads.update(beside).overall
    assert all_equal(found["us"], PLAN.update_us)
    assert len(found) == PLAN.iterations * len(PLAN.tensors)
    lost = np.flatnonzero((beside.worker == 2) & (beside.key == 3) & (beside.iteration == 4))
    beside.times[S_PUSH_RECV, lost] = MISSING
    assert len(overheads.update(beside).overall) == len(found) - 1


def test_phases_of_a_run_without_chance() -> None:
    plan = Plan(workers=2, iterations=6, bytes_per_us=0)
    found = phases.phases(table_of(plan))
    push = 7 * plan.gap_us
    # The last key's way: wire, update, wire, turnaround, wire, search, wire.
    way = 4 * plan.latency_us + plan.update_us + plan.turnaround_us + plan.search_us
    assert len(found) == 2 * 6
    assert all_equal(found["phase1_us"], plan.compute_us)
    assert all_equal(found["phase2_us"], push)
    later = found["iteration"] > 0  # in the first, one worker is behind the other
    assert all_equal(found["phase3_us"][later], push + way)
    assert all_equal(found["whole_us"][later], plan.compute_us + push + way)
    ratio = push / (plan.compute_us + push + way)
    assert np.allclose(found["overlap_ratio"][later], ratio)
    steps = exposed.per_step(exposed.per_layer(table_of(plan)))
    assert all_equal(steps["us"][steps["iteration"] > 0], way)


@pytest.mark.parametrize("training_from", [4, 8, 12])
def test_the_iteration_of_the_paper_s_own_file(training_from: int, tmp_path: Path) -> None:
    """It follows initialisation at once, so it is the first, however another tool numbers it."""
    path = tmp_path / "trace_worker_0.txt"
    path.write_text(figure_8(training_from))
    run = read_run(path)
    table = round_trips(run)
    found = phases.phases(table)
    (row,) = found.rows()
    assert (row["worker"], row["iteration"]) == (0, 0)
    assert tuple(row[f"phase{n}_us"] for n in (1, 2, 3)) == PHASES
    assert row["computation_us"] == PHASES[0] + PHASES[1]
    assert overheads.wait(table).overall["us"].tolist() == [WAIT_US]
    assert overheads.computation(table).overall["us"].tolist() == [PHASES[0] + PHASES[1]]
    assert (run.workers[0].iteration() == 0).sum() == 32


@pytest.mark.parametrize("note", ["from step 2", "lost 4"])
def test_where_records_are_known_to_be_missing_no_iteration_moves(note: str) -> None:
    """Initial values and then the third iteration: it stays the third."""
    worker = run_of(Plan(workers=1, iterations=4, tensors=TWO)).workers[0]
    number = worker.iteration()
    worker.records = worker.records.take(np.flatnonzero((number < 0) | (number >= 2)))
    assert 0 in worker.iteration()
    worker.notes.append(Note(0, note))
    assert sorted({*worker.iteration().tolist()}) == [-1, 2, 3]


def test_values_that_are_initialised_while_training_goes_on_begin_no_iteration() -> None:
    run = run_of(Plan(workers=1, iterations=3, tensors=TWO))
    worker = run.workers[0]
    assert {*phases.phases(round_trips(run)).columns["iteration"].tolist()} == {0, 1, 2}
    initial = np.flatnonzero((worker.records.operation == 3) & (worker.iteration() < 0))
    worker.records.time[initial[-1]] = worker.records.time.max() + 1
    found = phases.phases(round_trips(run))
    assert {*found.columns["iteration"].tolist()} == {1, 2}
    assert found.columns["phase1_us"].min() >= 0


def test_an_extra_pull_before_training_moves_no_iteration() -> None:
    """Only a push that follows initialisation at once opens the first iteration by itself."""
    run = run_of(Plan(workers=1, iterations=2, tensors=TWO))
    worker = run.workers[0]
    worker.records.op_num[worker.iteration() >= 0] += 4
    extra = worker.records.take(np.flatnonzero(worker.records.operation == 2)[:2])
    extra.op_num[:] = 6
    parts = {
        name: np.concatenate([worker.records.column(name), extra.column(name)])
        for name, _ in COLUMNS
    }
    worker.records = Records(**parts, lists=worker.records.lists)
    assert sorted({*worker.iteration().tolist()}) == [-1, 0, 1, 2]


@given(plan=st.one_of(plans(), plans(mode="mercury")))
@settings(max_examples=60, deadline=None)
def test_parts_add_up(plan: Plan) -> None:
    table = table_of(plain(plan))
    found = message_parts.parts_of_each(table)
    parts = [found[f"{part}_us"] for part in message_parts.PARTS]
    assert np.array_equal(sum(parts), found["whole_us"])
    assert min(part.min() for part in parts) >= 0
    if table.by_packets:
        assert found["wire_us"].max() == plan.latency_us == found["wire_us"].min()
        assert overheads.update(table).overall["us"].min() >= plan.update_us
    else:
        assert all_equal(found["server_queue_us"], plan.update_us + plan.search_us)
    layers = exposed.per_layer(table)
    steps = exposed.per_step(layers)
    edge = phases.edges(table)
    assert layers["us"].min() >= 0
    assert np.array_equal(steps["us"], edge["last_answer"] - edge["last_push"])
    _check_path(critical.path(table), table)


def _check_path(path: Table, table: RoundTrips) -> None:
    """Segments touch, and reach from the last answer of one iteration to that of another."""
    answers = phases.edges(table)
    last = {
        i: answers["last_answer"][answers["iteration"] == i].max()
        for i in np.unique(path["iteration"]).tolist()
    }
    for iteration, end in last.items():
        rows = path["iteration"] == iteration
        begins, spans = path["begin_us"][rows], path["us"][rows]
        order = np.lexsort((spans, begins))
        assert (begins + spans)[order][-1] == end
        assert np.array_equal((begins + spans)[order][:-1], begins[order][1:])
        assert spans.min() >= 0


def test_the_critical_path_goes_through_the_slow_worker() -> None:
    plan = Plan(workers=3, iterations=5, slower_us=(0, 3000, 0))
    path = critical.path(table_of(plan))
    computing = set(path["node"][path["what"] == critical.COMPUTATION].tolist())
    assert computing == {"worker 1"}
    share = critical.per_kind(path).row(what=critical.COMPUTATION)["us"]
    assert share == (plan.compute_us + 3000 + 7 * plan.gap_us) * (plan.iterations - 1)


def test_a_message_waits_for_the_one_before_it_on_its_link() -> None:
    link = np.asarray([0, 0, 0, 1])
    sent = np.asarray([0, 10, 500, 10])
    arrived = np.asarray([100, 150, 600, 20])
    assert message_parts.queued_until(link, sent, arrived).tolist() == [0, 100, 500, 10]


def test_urgent_bytes_behind_bulk() -> None:
    """The bulk tensor is pushed first and is on the wire while the urgent one waits."""
    plan = Plan(workers=1, iterations=3, tensors=TWO, gap_us=10, bytes_per_us=10)
    found = inversion.inverted(table_of(plan))
    pushes = found["direction"] == "push"
    urgent, bulk = (found["inverted_bytes"][pushes & (found["key"] == k)] for k in (0, 1))
    assert all_equal(urgent, 50_000 + plan.push_extra)
    assert all_equal(bulk, 0)
    slow = replace(plan, gap_us=60_000)
    assert all_equal(
        inversion.inverted(table_of(slow))["inverted_bytes"][pushes & (found["key"] == 0)], 0
    )


def test_gradients_that_appear_together_are_a_step() -> None:
    """Twelve gradients, planted in three steps of four, 30 ms apart, the most urgent last."""
    run = run_of(Plan(workers=2, servers=1, iterations=4, tensors=(PlannedTensor("t", 1000),) * 12))
    table = round_trips(run)
    step = (11 - table.key) // 4
    table.times[W_PUSH_SEND] = table.iteration * 10**6 + table.worker * 777 + 30_000 * step
    table.times[W_PUSH_SEND] += np.arange(len(table)) % 3 * 50  # and nearly at once
    starts, found = steps.section(table).figures["starts"], steps.section(table).tables[0]
    assert list(starts["index"]) == list(range(12))
    assert list(starts["step"]) == [2] * 4 + [1] * 4 + [0] * 4
    assert list(found["gradients"]) == [4, 4, 4]
    assert list(found["first_index"]) == [8, 4, 0]
    assert list(np.round(found["start_us"], -3)) == [0, 30_000, 60_000]
    assert list(np.round(found["pause_us"], -3)) == [0, 30_000, 30_000]


def test_a_trace_without_pushes_has_no_steps() -> None:
    table = table_of(Plan(workers=1, iterations=2, tensors=TWO))
    empty = steps.section(table.take(np.zeros(0, np.int64)))
    assert [len(found) for found in empty.tables] == [0, 0]


def test_prophet_s_notes_become_iterations() -> None:
    """Two lanes tell of one worker's iterations; what makes no sense is left out."""
    run = run_of(Plan(workers=2, iterations=2, tensors=TWO))
    assert prophet.section(run) is None
    told = "blocks {} bytes {} held_us 10 rate 500 production_error_us 20 transfer_error_us {}"
    waited = " wait_first_us 70 wait_later_us 9"
    notes = [
        "prophet 0 " + told.format(0, 0, 0),
        "prophet 1 " + told.format(4, 4000, 6) + waited,
        "prophet 1 " + told.format(2, 800, 8) + " wait_first_us 60 wait_later_us 99",
        "prophet 2 " + told.format(4, 2400, 8),
        *("prophet", "prophet x", "prophet 3 blocks", "prophet 3 blocks 1", "prophet -1"),
        "prophet 3 " + told.format(-1, 0, 0),
        "prophet 3 " + told.format(1 << 62, 0, 0),
        f"prophet {1 << 70} " + told.format(1, 1, 1),
    ]
    run.workers[1].notes += [Note(0, text) for text in notes]
    section = prophet.section(run)
    assert section is not None
    (mean,), found = section.tables[0].rows(), section.tables[1]
    assert list(found["worker"]) == [1, 1, 1]
    assert list(found["iteration"]) == [0, 1, 2]
    assert list(found["blocks"]) == [0, 6, 4]
    assert list(found["rate"]) == [500, 1000, 500]
    assert list(found["transfer_error_us"]) == [0, 8, 8]
    assert list(found["wait_first_us"]) == [-1, 70, -1]
    assert (mean["iterations"], mean["with_blocks"]) == (3, 2)
    assert (mean["blocks"], mean["block_bytes"], mean["held_us"]) == (10 / 3, 720, 40 / 3)
    assert (mean["wait_first_us"], mean["wait_later_us"]) == (70, 9)
    assert sections(run, round_trips(run))[-1].name == "prophet"


def test_priorities_come_from_the_notes() -> None:
    run = run_of(Plan(workers=1, iterations=3, tensors=TWO, gap_us=10, bytes_per_us=10))
    for trace in run.traces:
        trace.notes = [
            Note(0, f"key {key} bytes 1 priority {key} name {name}")
            for key, name in enumerate(("late", "early"))
        ]
    assert not inversion.inverted(round_trips(run))["inverted_bytes"].any()


def test_distributions_of_each_key_and_of_the_overlap() -> None:
    """In tenths, from the least to the most; the same in the tables and in the pictures."""
    table = table_of(PLAN)
    found = overheads.section(table)
    titles = {one.title: one for one in found.tables}
    assert list(found.figures) == ["distributions", *overheads.KINDS]
    samples = {s.kind: s for s in overheads.overheads(table)}
    assert list(samples) == list(overheads.KINDS)
    for kind, its in samples.items():
        row = titles["Distribution of the overheads, overall"].row(what=kind)
        values = its.overall["us"]
        assert (row["count"], row["p0_us"], row["p100_us"]) == (
            len(values), values.min(), values.max()
        )  # fmt: skip
        assert row["p50_us"] == np.median(values)
        of_key = titles[f"{kind.capitalize()} per key: distribution"].row(key=4)
        mine = its.by_key["us"][its.by_key["key"] == 4]
        assert of_key["name"] == "dense0_weight"
        assert of_key["p30_us"] == np.percentile(mine, 30)
        drawn = found.figures[kind]
        curve = drawn["value"][drawn["what"] == "4 dense0_weight"]
        assert (curve[0], curve[-1]) == (mine.min(), mine.max())
    ratios = phases.phases(table)["overlap_ratio"]
    section = phases.section(table)
    row = section.tables[2].row(what="all workers")
    assert (row["count"], row["p0"], row["p50"]) == (len(ratios), ratios.min(), np.median(ratios))
    assert section.tables[2].row(what="worker 2")["count"] == PLAN.iterations
    assert section.figures["overlap"]["value"].max() == ratios.max()


def test_words_for_what_travels_are_told_in_turn() -> None:
    run = run_of(Plan(iterations=3))
    assert len(sizes.wires(run)) == 0
    first = min(run.workers, key=lambda trace: trace.header.rank)
    first.notes += [Note(0, text) for text in ("wire 4 bf16", "wire 4 int8", "wire x", "wire 99 a")]
    table = sizes.wires(run)
    assert table.row(key=4)["as"] == "bf16, then int8"
    assert len(table) == 1
    assert table in sizes.section(run).tables


def test_sizes_are_the_messages_and_each_is_counted_once() -> None:
    run = run_of(Plan(iterations=3))
    found = sizes.per_key_and_operation(sizes.training_columns(run), run)
    row = found.row(key=4, operation="Push_Send_Worker")
    assert (row["min_bytes"], row["max_bytes"], row["count"]) == (1600042, 1600042, 2 * 3)
    volume = sizes.per_iteration(sizes.training_columns(run))
    payload = sum(tensor.bytes for tensor in Plan().tensors)
    assert all_equal(volume["messages"], 2 * 32)
    assert all_equal(volume["to_servers_bytes"], 2 * (payload + 8 * (42 + 28)))
    assert all_equal(volume["to_workers_bytes"], 2 * (payload + 8 * (28 + 36)))
    alone = sizes.training_columns(assemble(run.servers))
    assert len(alone["key"]) == 2 * 3 * 32


def test_balance() -> None:
    tensors = tuple(PlannedTensor(f"t{n}", 1000 if n % 2 else 3000) for n in range(4))
    plan = Plan(workers=2, servers=2, iterations=2, tensors=tensors, push_extra=0, answer_extra=0)
    load = balance.servers(table_of(plan))
    assert load["push_bytes"].tolist() == [2 * 2 * 6000, 2 * 2 * 2000]
    assert load["load_to_mean"].tolist() == [1.5, 0.5]
    hot = balance.keys(table_of(plan))
    assert hot["key"].tolist() == [0, 2, 1, 3]
    per_round = plan.update_us + 2 * plan.search_us
    assert all_equal(hot["server_us"], 2 * per_round)
    packets = table_of(replace(plan, mode="mercury"))
    hot = balance.keys(packets)
    assert int(hot["server_us"].sum()) == int(overheads.update(packets).overall["us"].sum())


def test_servers_of_which_nothing_is_known_are_not_idle() -> None:
    run = run_of(replace(PLAN, servers=3, tensors=TWO))
    whole = balance.servers(round_trips(run))
    assert whole["server"].tolist() == [0, 1, 2]
    assert whole["keys"] == [1, 1, 0]
    alone = balance.servers(round_trips(assemble([run.servers[1]])))
    assert alone["server"].tolist() == [1]
    assert alone["load_to_mean"].tolist() == [1]


def test_comparison_marks_what_changed_and_nothing_else() -> None:
    before = table_of(PLAN)
    after = table_of(replace(PLAN, update_us=PLAN.update_us + 400))
    found = compare.compare(before, after)
    assert found.row(what="update_us")["verdict"] == "more"
    assert found.row(what="search_us")["verdict"] == "same"
    assert found.row(what="update_us")["change"] == pytest.approx(400 / PLAN.update_us)
    again = compare.compare(before, before)
    assert set(again["verdict"]) == {"same"}
    assert compare.compare(after, before).row(what="update_us")["verdict"] == "less"


@pytest.mark.parametrize("mode", ["zmq", "mercury"])
def test_all_sections_can_be_had_of_what_is_there(mode: str) -> None:
    """Of a whole run, of workers only, of servers only, of one iteration."""
    run = run_of(replace(PLAN, mode=mode))
    short = run_of(replace(PLAN, mode=mode, iterations=1))
    for part in (run, short, assemble(run.workers), assemble(run.servers)):
        found = sections(part, round_trips(part))
        assert len(found) == 10
        for section in found:
            for table in section.tables:
                assert len({len(values) for values in table.columns.values()}) == 1
                assert table.text()
                assert table.as_dict()["title"] == table.title


def test_bytes_are_spread_over_the_time_that_they_took() -> None:
    begin, end, size = (np.array(v, float) for v in ([0, 10, 30], [20, 10, 40], [200, 7, 50]))
    moved = spread(begin, end, size, np.array([0.0, 10, 20, 30, 50]))
    assert moved == pytest.approx([100, 107, 0, 50])


def test_exposed_communication_of_very_many_steps() -> None:
    plan = Plan(workers=2, servers=1, iterations=2800, tensors=SMALL[:1], bytes_per_us=0)
    table = table_of(plan)
    steps, edge = exposed.per_step(exposed.per_layer(table)), phases.edges(table)
    assert np.array_equal(steps["us"], edge["last_answer"] - edge["last_push"])
