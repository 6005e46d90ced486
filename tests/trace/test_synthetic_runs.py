"""The synthetic runs are what the format's description says: numbers, dependencies, sizes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.trace.synthetic_runs import LENET_BYTES, beside_the_payload, run_of
from tracer.check import check_run
from tracer.format.reader import read_trace
from tracer.format.record import Bools, Trace
from tracer.run import assemble
from tracer.synthetic import LENET5, Plan, write_run
from tracer.synthetic.lengthen import lengthened
from tracer.synthetic.shape import shape

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "trace"
PLAN = Plan(workers=2, servers=1, iterations=2)


def lines_of(trace: Trace, key: int, peer: str) -> list[str]:
    """`operation op_id dep_type id_dep` of one key with one node, in order of their numbers."""
    wanted = [line.split() for line in shape(trace)]
    return [
        " ".join(words[2:])
        for words in wanted
        if words[3].split("-")[0] == str(key) and words[3].endswith(f"-{peer}")
    ]


def test_worker_0() -> None:
    worker = run_of(PLAN).workers[0]
    assert lines_of(worker, 6, "s0")[:9] == [
        "Push_Send_Worker 6-0-s0 0 -1",
        "Push_Recv_Worker 6-1-s0 1 6-0-s0",
        "Pull_Send_Worker 6-2-s0 2 6-1-s0",
        "Pull_Recv_Worker 6-3-s0 3 6-2-s0",
        "Push_Send_Worker 6-4-s0 4 (3-s0.)",
        "Push_Recv_Worker 6-5-s0 1 6-4-s0",
        "Pull_Send_Worker 6-6-s0 2 6-5-s0",
        "Pull_Recv_Worker 6-7-s0 3 6-6-s0",
        "Push_Send_Worker 6-8-s0 4 (7-s0.)",
    ]


def test_other_workers() -> None:
    worker = run_of(PLAN).workers[1]
    assert lines_of(worker, 0, "s0")[:6] == [
        "Pull_Send_Worker 0-0-s0 0 -1",
        "Pull_Recv_Worker 0-1-s0 3 0-0-s0",
        "Push_Send_Worker 0-2-s0 4 (1-s0.)",
        "Push_Recv_Worker 0-3-s0 1 0-2-s0",
        "Pull_Send_Worker 0-4-s0 2 0-3-s0",
        "Pull_Recv_Worker 0-5-s0 3 0-4-s0",
    ]


def test_servers() -> None:
    server = run_of(PLAN).servers[0]
    assert lines_of(server, 0, "w0")[:9] == [
        "Push_Recv_Server 0--2-w0 0 -1",
        "Push_Send_Server 0--1-w0 1 0--2-w0",
        "Pull_Recv_Server 0-0-w0 2 0--1-w0",
        "Pull_Send_Server 0-1-w0 3 0-0-w0",
        "Push_Recv_Server 0-2-w0 4 (1-w0.1-w1.)",
        "Push_Send_Server 0-3-w0 1 (2-w0.2-w1.)",
        "Pull_Recv_Server 0-4-w0 2 0-3-w0",
        "Pull_Send_Server 0-5-w0 3 0-4-w0",
        "Push_Recv_Server 0-6-w0 4 (5-w0.5-w1.)",
    ]
    assert lines_of(server, 0, "w1")[:3] == [
        "Pull_Recv_Server 0-0-w1 0 -1",
        "Pull_Send_Server 0-1-w1 3 0-0-w1",
        "Push_Recv_Server 0-2-w1 4 (1-w0.1-w1.)",
    ]


def test_asynchronous_servers_wait_for_nobody() -> None:
    server = run_of(replace(PLAN, training="asynchronous")).servers[0]
    assert lines_of(server, 0, "w1")[2:4] == [
        "Push_Recv_Server 0-2-w1 4 (1-w1.)",
        "Push_Send_Server 0-3-w1 1 0-2-w1",
    ]


def test_packets() -> None:
    run = run_of(replace(PLAN, mode="mercury"))
    assert lines_of(run.workers[0], 4, "s0")[4:8] == [
        "Push_Send_Worker 4-4-s0 4 (3-s0.)",
        "Push_Recv_Worker 4-5-s0 1 4-4-s0",
        "Pull_Send_Worker 4-6-s0 2 4-4-s0",
        "Pull_Recv_Worker 4-7-s0 3 4-6-s0",
    ]
    assert lines_of(run.servers[0], 4, "w1")[2:6] == [
        "Push_Recv_Server 4-2-w1 4 (1-w0.1-w1.)",
        "Push_Send_Server 4-3-w1 1 4-2-w1",
        "Pull_Recv_Server 4-4-w1 2 (2-w0.2-w1.)",
        "Pull_Send_Server 4-5-w1 3 4-4-w1",
    ]


def test_several_servers_are_all_waited_for() -> None:
    plan = replace(PLAN, servers=2, split_bytes=1_000_000)
    worker = run_of(plan).workers[1]
    assert lines_of(worker, 4, "s1")[2] == "Push_Send_Worker 4-2-s1 4 (1-s0.1-s1.)"


def test_32_records_an_iteration_with_the_paper_s_payloads() -> None:
    run = run_of(PLAN)
    assert [tensor.bytes for tensor in LENET5] == LENET_BYTES
    for worker in run.workers:
        iteration = worker.iteration()
        for number in range(PLAN.iterations):
            assert (iteration == number).sum() == 32
    assert beside_the_payload(run) == {0: {42}, 1: {28}, 2: {28}, 3: {36}}


def test_numbers_of_dispatch_pair_a_push_with_its_pull() -> None:
    for trace in run_of(PLAN).workers:
        r = trace.records
        training = trace.iteration() >= 0
        push = dict(zip(*_columns(trace, training & (r.operation == 0))))
        pull = dict(zip(*_columns(trace, training & (r.operation == 2))))
        assert {place: number + 1 for place, number in push.items()} == {
            (key, number - 2): dispatch for (key, number), dispatch in pull.items()
        }
        assert len({number % 2 for number in push.values()}) == 1
    first = run_of(PLAN).workers[0].records
    assert (first.num_pp[(first.op_num < 2) & first.is_data] == -15).all()


def _columns(trace: Trace, rows: Bools) -> tuple[list[tuple[int, int]], list[int]]:
    r = trace.records
    places = list(zip(r.key[rows].tolist(), r.op_num[rows].tolist()))
    return places, r.num_pp[rows].tolist()


@pytest.mark.parametrize("mode", ["zmq", "mercury"])
def test_golden_files(mode: str, tmp_path: Path) -> None:
    """Byte for byte. After a wanted change: tests/golden/trace/README.md says how to renew them."""
    plan = Plan(iterations=2, mode=mode, bytes_per_us=12500, run=f"golden-{mode}")
    written = write_run(plan, tmp_path)
    kept = sorted((GOLDEN / mode).glob("*.txt"))
    assert [path.name for path in kept] == sorted(path.name for path in written)
    for path in kept:
        assert (tmp_path / path.name).read_text() == path.read_text(), path.name
        assert read_trace(path, strict=True).problems == []


def test_lengthened_runs_are_right_too() -> None:
    traces = [lengthened(trace, 2000) for trace in run_of(replace(PLAN, iterations=4)).traces]
    assert all(len(trace.records) >= 2000 for trace in traces)
    # Worker 0 has more records before training, so that it ends earlier: nothing else is amiss.
    rules = {finding.rule for finding in check_run(assemble(traces))}
    assert rules <= {"counts"}


@pytest.mark.parametrize("mode", ["zmq", "mercury"])
@pytest.mark.parametrize("split_bytes", [1000, 10**9])
def test_every_iteration_is_there(mode: str, split_bytes: int) -> None:
    plan = replace(PLAN, workers=3, servers=3, iterations=4, mode=mode, split_bytes=split_bytes)
    pieces = sum(len(plan.pieces(key)) for key in range(8))
    for trace in run_of(plan).workers:
        assert [(trace.iteration() == n).sum() for n in range(4)] == [4 * pieces] * 4
