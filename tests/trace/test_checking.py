"""Right runs are found right; each kind of damage is found and named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trace.figure_8 import figure_8
from tests.trace.synthetic_runs import plans, run_of
from tracer.check import ERROR, Finding, check_run, run_rules
from tracer.format.record import DEP_LIST, FIRST_PACKET, NODES_MOST, OPERATIONS, Note, Trace
from tracer.run import Run, assemble, read_run
from tracer.synthetic import Plan

PLAN = Plan(workers=2, servers=2, iterations=4, split_bytes=1_000_000, ahead_us=(0, 700, -3))


@given(plan=st.one_of(plans(), plans(mode="mercury"), plans(training="asynchronous")))
@settings(max_examples=70, deadline=None)
def test_right_runs(plan: Plan) -> None:
    assert unexpected(check_run(run_of(plan))) == []


def unexpected(findings: list[Finding]) -> list[str]:
    """With few tensors and many servers, some servers have nothing to do."""
    idle = {"holds no push and no pull"}
    return [
        str(f) for f in findings if f.text not in idle and "nothing ties the clock" not in f.text
    ]


def training_row(trace: Trace, operation: int, iteration: int = 2) -> int:
    rows = np.flatnonzero((trace.records.operation == operation) & (trace.iteration() == iteration))
    return int(rows[len(rows) // 2])


def without(trace: Trace, row: int) -> Trace:
    keep = np.arange(len(trace.records)) != row
    return replace(trace, records=trace.records.take(keep))


def change(run: Run, column: str, operation: int, by: int) -> None:
    trace = run.workers[0] if operation < 4 else run.servers[0]
    trace.records.column(column)[training_row(trace, operation)] += by


def drop_worker_record(run: Run) -> None:
    run.workers[0] = without(run.workers[0], training_row(run.workers[0], 1))


def repeat_a_record(run: Run) -> None:
    trace = run.workers[0]
    row = training_row(trace, 2)
    twice = np.sort(np.append(np.arange(len(trace.records)), row))
    run.workers[0] = replace(trace, records=trace.records.take(twice))


def list_of_nobody(run: Run) -> None:
    records = run.servers[0].records
    row = training_row(run.servers[0], 5)
    assert records.dep_kind[row] == DEP_LIST
    records.lists.append("(10-w0.10-w7.)")
    records.dep_num[row] = len(records.lists) - 1


def depend_on_itself(run: Run) -> None:
    records = run.workers[1].records
    row = training_row(run.workers[1], 1)
    records.dep_key[row], records.dep_num[row] = records.key[row], records.op_num[row]
    records.dep_node[row], records.d_time[row] = records.node[row], 0


def lead_nobody(run: Run) -> None:
    run.servers[0].notes.append(Note(0, "leader worker 99"))


def swap_times(run: Run) -> None:
    trace = run.workers[1]
    one, two = training_row(trace, 2), training_row(trace, 3)
    time = trace.records.time
    time[one], time[two] = time[two], time[one]


def impossible_times(run: Run) -> None:
    """A server's answers before their requests, and never the same way twice."""
    server = run.servers[0]
    for row in np.flatnonzero(server.iteration() >= 0).tolist():
        server.records.time[row] += 1_000_000 * (row % 2)


def first_packet_twice(run: Run) -> None:
    r = run.workers[0].records
    one, two = np.flatnonzero((r.operation == FIRST_PACKET) & (r.key == 4))[:2]
    for name in ("op_num", "node", "dep_num", "dep_node"):
        r.column(name)[two] = r.column(name)[one]


def first_packet_too_soon(run: Run) -> None:
    r = run.workers[0].records
    r.time[np.flatnonzero(r.operation == FIRST_PACKET)[5]] -= 10**6


def op_id_of_nothing(run: Run) -> None:
    r = run.workers[0].records
    row = training_row(run.workers[0], 0)
    r.key[row] = r.op_num[row] = 2**31 - 1


def header_of_nothing(run: Run) -> None:
    op_id_of_nothing(run)
    header = run.workers[0].header
    run.workers[0].header = replace(header, workers=NODES_MOST, servers=NODES_MOST)


# In packets alone.
PACKETS: dict[str, tuple[Callable[[Run], None], set[str]]] = {
    "a first packet twice": (first_packet_twice, {"twice"}),
    "a packet before its push": (first_packet_too_soon, {"dependency"}),
}

DAMAGE: dict[str, tuple[Callable[[Run], None], set[str]]] = {
    "a missing record": (drop_worker_record, {"counts", "dependency"}),
    "a record twice": (repeat_a_record, {"twice"}),
    "a list of nobody": (list_of_nobody, {"dependency"}),
    "times that run backwards": (swap_times, {"order", "dependency"}),
    "impossible times": (impossible_times, {"clocks"}),
    "a record that waits for itself": (depend_on_itself, {"dependency"}),
    "a leader that is not": (lead_nobody, {"peer"}),
    "wrong length": (lambda run: change(run, "length", 0, 5), {"length"}),
    "negative length": (lambda run: change(run, "length", 0, -(10**9)), {"length"}),
    "wrong num_pp": (lambda run: change(run, "num_pp", 3, 2), {"num_pp"}),
    "wrong dep_type": (lambda run: change(run, "dep_type", 1, 1), {"dep_type"}),
    "wrong d_time": (lambda run: change(run, "d_time", 2, 7), {"d_time"}),
    "wrong op_id": (lambda run: change(run, "op_num", 2, 1), {"op_num"}),
    "wrong source": (lambda run: change(run, "src", 4, 1), {"ends"}),
    "a header of nothing": (header_of_nothing, {"op_id"}),
    "a node that is not": (lambda run: change(run, "node", 4, 30), {"peer"}),
    "the other role's operation": (lambda run: change(run, "operation", 4, -4), {"role"}),
}


@pytest.mark.parametrize("name", [*DAMAGE, *PACKETS])
def test_damage_is_found(name: str) -> None:
    damage, rules = {**DAMAGE, **PACKETS}[name]
    run = run_of(replace(PLAN, mode="mercury" if name in PACKETS else "zmq"))
    damage(run)
    findings = check_run(run)
    assert findings
    assert rules <= {finding.rule for finding in findings if finding.severity == ERROR}, findings
    assert all("\n" not in str(finding) for finding in findings)


def test_an_op_id_of_nothing_hides_nothing_else() -> None:
    run = run_of(replace(PLAN, workers=3))
    op_id_of_nothing(run)
    change(run, "length", 6, 5)
    findings = check_run(run)
    assert {"counts", "length"} <= {finding.rule for finding in findings}
    assert any("key 2147483647" in finding.text for finding in findings)


def test_a_file_that_names_only_nodes_that_are_not() -> None:
    run = assemble([run_of(PLAN).servers[0]])
    run.servers[0].records.node += 30
    findings = check_run(run)
    assert {"peer", "node-missing"} <= {finding.rule for finding in findings}


def test_a_file_that_says_it_is_incomplete_is_only_warned_about() -> None:
    run = run_of(PLAN)
    cut = run.workers[0]
    end = len(cut.records) - 9
    run.workers[0] = replace(
        cut, records=cut.records.take(np.arange(end)), notes=[Note(0, "lost 9")]
    )
    findings = check_run(run)
    assert [f for f in findings if f.severity == ERROR] == []
    assert {"lost", "no-end", "counts"} <= {f.rule for f in findings}


def cut_off(trace: Trace, records: int, *notes: Note) -> Trace:
    """The trace as if its process had ended in order after so many records."""
    kept = [note for note in trace.notes if not note.text.startswith("end ")]
    end = Note(records, f"end {records} records")
    return replace(
        trace, records=trace.records.take(np.arange(records)), notes=[*kept, *notes, end]
    )


@pytest.mark.parametrize("mode", ["zmq", "mercury"])
def test_what_a_failed_job_cut_short_is_only_warned_about(mode: str) -> None:
    run = run_of(replace(PLAN, mode=mode))
    whole = run.workers[0]
    # In the middle of an iteration, with pushes under way.
    last = training_row(whole, 0, 3) + 1
    run.workers[0] = cut_off(whole, last)
    errors = {f.rule for f in check_run(run) if f.severity == ERROR}
    assert errors == {"counts"}
    run.workers[0] = cut_off(whole, last, Note(last, "failed worker 1 was lost"))
    findings = check_run(run)
    assert [f for f in findings if f.severity == ERROR] == []
    assert {"counts", "failed"} <= {f.rule for f in findings}
    # What had come to its end before must still be right.
    run.servers[0] = without(run.servers[0], training_row(run.servers[0], 7, 1))
    rules = {f.rule for f in check_run(run) if f.severity == ERROR}
    assert rules == {"counts", "dependency"}


def test_what_a_lost_worker_had_not_sent_is_only_warned_about() -> None:
    run = run_of(PLAN)
    # Of worker 1's push, which the sum depends on, the server has nothing.
    whole = run.servers[0]
    lost = without(whole, training_row(whole, 4))
    run.servers[0] = lost
    assert "dependency" in {f.rule for f in check_run(run) if f.severity == ERROR}
    note = Note(0, "without worker 1: lost worker 1: its connection was closed")
    run.servers[0] = replace(lost, notes=[note, *lost.notes])
    findings = check_run(run)
    assert "dependency" in {f.rule for f in findings}
    assert "dependency" not in {f.rule for f in findings if f.severity == ERROR}


@pytest.mark.parametrize("training_from", [4, 8, 12])
def test_the_paper_s_own_file_is_worth_no_warning(tmp_path: Path, training_from: int) -> None:
    """But that it is alone, and that its writer did not say that it came to its end."""
    path = tmp_path / "trace_worker_0.txt"
    path.write_text(figure_8(training_from))
    run = read_run(path, strict=True)
    assert len(run.workers[0].records) == 68
    assert {f.rule for f in check_run(run)} == {"no-end", "node-missing"}


def test_of_the_same_microsecond_either_may_have_been_first() -> None:
    """An answer and the next push, stamped alike by two threads, written in either order."""
    run = run_of(PLAN)
    r = run.servers[0].records
    push = training_row(run.servers[0], 4)
    others = (r.key == r.key[push]) & (r.op_num == r.op_num[push] - 1)
    answers = np.flatnonzero(others & (r.operation == 7))
    late, early = answers[np.argsort(r.time[answers])][::-1]
    assert r.d_time[push] == r.time[push] - r.time[late]
    r.d_time[push] += 7
    assert "d_time" in {f.rule for f in check_run(run)}
    r.d_time[push] = r.time[push] - r.time[early]
    r.d_time[late] += r.time[push] - r.time[late]
    r.time[late] = r.time[push]
    assert [f for f in check_run(run) if f.rule == "d_time"] == []


def test_a_window_of_steps_is_whole() -> None:
    """Numbers go on counting outside the window, and what came before it is not missed."""
    run = run_of(replace(PLAN, iterations=8))
    traces = []
    for trace in run.traces:
        iteration = trace.iteration()
        keep = np.flatnonzero((iteration >= 3) & (iteration < 6))
        notes = [note for note in trace.notes if not note.text.startswith("end")]
        notes = [replace(note, before=0) for note in notes] + [Note(len(keep), "end")]
        traces.append(replace(trace, records=trace.records.take(keep), notes=notes))
    assert [str(f) for f in check_run(assemble(traces))] == []


def lacking_by_hand(run: Run) -> list[tuple[str, str, int]]:
    """(where, what is there, how often it has no other end): pair by pair, with sets."""
    seen: dict[tuple[int, str], set[tuple[int, int]]] = {}
    for trace in run.traces:
        ends = trace.ends(np.arange(len(trace.records)))
        steps, r = trace.iteration().tolist(), trace.records
        for step, key, operation, *pair in zip(steps, r.key, r.operation, *ends):
            if step >= 0 and operation < 8:
                where = "worker {} and server {}".format(*pair)
                seen.setdefault((int(operation), where), set()).add((step, int(key)))
    pairs = [(w.header.rank, s.header.rank) for w in run.workers for s in run.servers]
    found = []
    for where in map("worker {0[0]} and server {0[1]}".format, pairs):
        for one, two in run_rules.PAIRS:
            for here, there in ((one, two), (two, one)):
                lacking = seen.get((here, where), set()) - seen.get((there, where), set())
                found += [(where, OPERATIONS[here], len(lacking))] * bool(lacking)
    return found


@given(seed=st.integers(0, 1000), share=st.sampled_from((0.0, 0.01, 0.3)))
@settings(max_examples=20, deadline=None)
def test_each_message_that_has_one_end_only_is_counted(seed: int, share: float) -> None:
    run = run_of(replace(PLAN, workers=3))
    random = np.random.default_rng(seed)
    for role in (run.workers, run.servers):
        del role[random.integers(len(role) + 1) :]
        for at, trace in enumerate(role):
            kept = (random.random(len(trace.records)) >= share) | (trace.iteration() < 0)
            role[at] = replace(trace, records=trace.records.take(kept))
    if run.workers or run.servers:
        counted = [f for f in check_run(run) if f.rule == "counts"]
        told = [(f.where, f.text.split()[0], f.count) for f in counted]
        assert told == lacking_by_hand(run)


def test_a_right_run_is_looked_through_once_however_many_nodes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def told(rule: str, *_: object) -> list[Finding]:
        assert rule != "counts"
        return []

    monkeypatch.setattr(run_rules, "_told", told)
    assert check_run(run_of(PLAN)) == []


def test_missing_nodes_are_named() -> None:
    run = run_of(PLAN)
    findings = check_run(assemble([run.workers[0], run.servers[1]]))
    assert {f.text for f in findings if f.rule == "node-missing"} == {
        "no file of worker 1",
        "no file of server 0",
    }
    assert not any(f.severity == ERROR for f in findings)


@given(seed=st.integers(0, 100))
@settings(max_examples=10, deadline=None)
def test_order_in_the_file_does_not_matter(seed: int) -> None:
    run = run_of(PLAN)
    for trace in run.traces:
        order = np.random.default_rng(seed).permutation(len(trace.records))
        trace.records = trace.records.take(order)
    assert [f for f in check_run(run) if f.severity == ERROR] == []
