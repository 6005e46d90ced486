"""What other tools are given is what they can read."""

from __future__ import annotations

import csv
import importlib
import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from tests.trace.chrome_rules import violations
from tests.trace.synthetic_runs import plans, run_of
from tracer.analysis.overheads import search, update
from tracer.clocks import aligned
from tracer.errors import MissingExtraError, TraceError
from tracer.export import tabular
from tracer.export.chakra import write_chakra
from tracer.export.chrome import write_chrome
from tracer.format.protobuf import message_fields, read_varint
from tracer.format.record import CODE
from tracer.run import Run, assemble
from tracer.synthetic import Plan

PLAN = Plan(workers=2, servers=2, iterations=3, split_bytes=1_000_000, ahead_us=(0, 9000, -5))


def chrome_of(run: Run, folder: Path) -> Any:
    table, _ = aligned(run)
    count = write_chrome(run, table, folder / "trace.json")
    document = json.loads((folder / "trace.json").read_text())
    assert len(document["traceEvents"]) == count
    return document


@pytest.mark.parametrize("mode", ["zmq", "mercury"])
def test_chrome_by_the_rules(mode: str, tmp_path: Path) -> None:
    document = chrome_of(run_of(replace(PLAN, mode=mode)), tmp_path)
    assert violations(document) == []
    events = document["traceEvents"]
    names = {e["args"]["name"]: e["pid"] for e in events if e["name"] == "process_name"}
    assert set(names) == {
        "worker 0 (worker0)",
        "worker 1 (worker1)",
        "server 0 (server0)",
        "server 1 (server1)",
    }
    assert len(set(names.values())) == 4
    arrows = [e for e in events if e["ph"] == "s"]
    rows = 2 * 3 * 9  # workers, iterations, seven tensors whole and one on both servers
    assert len(arrows) == 4 * rows
    ends = {(e["name"], e["id"]): e for e in events if e["ph"] == "f"}
    assert all(e["pid"] != ends[e["name"], e["id"]]["pid"] for e in arrows)


@given(plan=plans())
@settings(max_examples=10, deadline=None)
def test_chrome_of_any_run(plan: Plan) -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert violations(chrome_of(run_of(plan), Path(folder))) == []


def test_the_rules_notice() -> None:
    """A validator that finds nothing anywhere would prove nothing."""

    def piece(at: float, length: float, lane: int = 1) -> dict[str, Any]:
        base = {"name": "n", "cat": "c", "ph": "X", "pid": 1, "tid": lane}
        return {**base, "ts": at, "dur": length}

    arrow = {"name": "n", "cat": "c", "ph": "s", "pid": 1, "tid": 1, "ts": 1.0, "id": 1}
    end = {**arrow, "ph": "f", "bp": "e", "ts": 25.0}
    assert violations({"traceEvents": [piece(0, 10), piece(5, 2), piece(10, 3)]}) == []
    assert "cross" in violations({"traceEvents": [piece(0, 10), piece(5, 10)]})[0]
    assert "has ['s']" in violations({"traceEvents": [piece(0, 10), arrow]})[0]
    assert "no slice" in violations({"traceEvents": [piece(0, 10), arrow, end]})[0]
    assert "no length" in violations({"traceEvents": [piece(0, 0)]})[0]
    assert violations([]) == ["no list of traceEvents"]


def test_chrome_of_one_end_only(tmp_path: Path) -> None:
    run = assemble(run_of(PLAN).workers)
    document = chrome_of(run, tmp_path)
    assert violations(document) == []
    assert not any(event["ph"] == "s" for event in document["traceEvents"])


def test_csv(tmp_path: Path) -> None:
    run = run_of(PLAN)
    _, alignment = aligned(run)
    count = tabular.write_csv(run, alignment, tmp_path / "t.csv")
    with open(tmp_path / "t.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == count == sum(len(trace.records) for trace in run.all)
    server = next(r for r in rows if r["role"] == "server" and r["op_num"] == "3")
    assert server["operation"] == "Push_Send_Server"
    assert server["id_dep"] == "(2-w0.2-w1.)"
    assert server["dep_type"] == "Push_on_Push"
    moved = int(server["aligned_time_us"]) - int(server["time_us"])
    assert abs(moved - 5) <= alignment.clocks["server 0"].within_us + 1


def test_parquet_holds_what_csv_holds(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    run = run_of(PLAN)
    _, alignment = aligned(run)
    tabular.write_parquet(run, alignment, tmp_path / "t.parquet")
    tabular.write_csv(run, alignment, tmp_path / "t.csv")
    table = parquet.read_table(tmp_path / "t.parquet").to_pylist()
    with open(tmp_path / "t.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [{k: str(v) for k, v in row.items()} for row in table] == rows


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    run = run_of(PLAN)
    with pytest.raises(MissingExtraError, match="pip install pyarrow"):
        tabular.write_parquet(run, aligned(run)[1], tmp_path / "t.parquet")


def chakra_messages(path: Path) -> list[bytes]:
    """The metadata, then the nodes."""
    data = path.read_bytes()
    at, messages = 0, []
    while at < len(data):
        size, at = read_varint(data, at)
        messages.append(data[at : at + size])
        at += size
    return messages


def chakra_nodes(path: Path) -> list[dict[int, Any]]:
    """By the numbers of their fields."""
    nodes = []
    for message in chakra_messages(path)[1:]:
        node: dict[int, Any] = {5: [], 10: {}}
        for number, value in message_fields(message):
            if number == 5:
                assert isinstance(value, memoryview)
                place = 0
                while place < len(value):
                    dep, place = read_varint(value, place)
                    node[5].append(dep)
            elif number == 10:
                assert isinstance(value, memoryview)
                fields = dict(message_fields(value))
                name = fields.pop(1)
                assert isinstance(name, memoryview)
                node[10][bytes(name).decode()] = next(iter(fields.values()))
            else:
                node[number] = value
        nodes.append(node)
    return nodes


@pytest.mark.parametrize("mode", ["zmq", "mercury"])
def test_chakra(mode: str, tmp_path: Path) -> None:
    run = run_of(replace(PLAN, mode=mode))
    paths = write_chakra(run, tmp_path)
    assert [path.name for path in paths] == [f"trace.{n}.et" for n in range(4)]
    sent: set[tuple[Any, ...]] = set()
    received: set[tuple[Any, ...]] = set()
    for rank, path in enumerate(paths):
        nodes = chakra_nodes(path)
        assert [node[1] for node in nodes] == list(range(1, len(nodes) + 1))
        for node in nodes:
            assert all(dep < node[1] for dep in node[5]), "depends on what comes later"
            said = node[10]
            if node[3] in (5, 6):
                message = (said["comm_src"], said["comm_dst"], said["comm_tag"], said["comm_size"])
                (sent if node[3] == 5 else received).add(message)
                assert said["comm_src" if node[3] == 5 else "comm_dst"] == rank
            else:
                assert node[3] == 4
                assert node[7] > 0
    assert sent == received
    training = 2 * 3 * 9 * (4 if mode == "zmq" else 2)
    assert len(sent) > training


@pytest.mark.parametrize("asks_ahead", [False, True])
@pytest.mark.parametrize("mode", ["zmq", "mercury"])
def test_chakra_s_servers_compute_updates_and_searches_alone(
    mode: str, asks_ahead: bool, tmp_path: Path
) -> None:
    """And each sum depends on all pushes of its key, by way of what the server did before it."""
    plan = replace(PLAN, mode=mode, asks_ahead=asks_ahead, slower_us=(0, 3000), bytes_per_us=12)
    table = aligned(run_of(plan))[0]
    took = [int(update(table).overall["us"].sum())]
    if mode == "zmq":
        took.append(int(search(table).overall["us"].sum()))
    paths = write_chakra(run_of(plan), tmp_path)
    computed = 0
    for path in paths[2:]:
        nodes = {node[1]: node for node in chakra_nodes(path)}
        waits_for: dict[int, set[str]] = {}
        for number, node in nodes.items():
            name = bytes(node[2]).decode()
            key, op_num, worker = name.split()[-1].rsplit("-", 2)
            trained = not key.endswith("-") and int(op_num) > 1
            if node[3] == 4 and trained:
                computed += node[7]
            pushes = {name} if name.startswith("Push_Recv_Server") else set()
            waits_for[number] = pushes.union(*(waits_for[dep] for dep in node[5]))
            if name.startswith("Pull_Send_Server") and trained:
                push = f"Push_Recv_Server {key}-{int(op_num) - 3}"
                assert {f"{push}-w0", f"{push}-w1"} <= waits_for[number]
    assert computed == sum(took)


def test_chakra_s_pushes_are_in_with_their_last_packet(tmp_path: Path) -> None:
    run = run_of(replace(PLAN, mode="mercury", bytes_per_us=12))
    nodes = chakra_nodes(write_chakra(run, tmp_path)[2])
    received = sorted(node[6] for node in nodes if bytes(node[2]).startswith(b"Push_Recv_Server"))
    r = run.servers[0].records
    assert received == sorted(r.time[r.operation == CODE["Push_Send_Server"]].tolist())


def test_chakra_s_tags_are_the_messages_own_whatever_their_keys(tmp_path: Path) -> None:
    run = run_of(PLAN)
    for trace in run.traces:
        trace.notes = []
        trace.records.key *= 4
        trace.records.dep_key *= 4
    for path in write_chakra(run, tmp_path):
        said = [(node[3], node[10]) for node in chakra_nodes(path) if node[3] != 4]
        messages = {(k, m["comm_src"], m["comm_dst"], m["comm_tag"]) for k, m in said}
        assert len(messages) == len(said)


def test_chakra_s_own_reader(tmp_path: Path) -> None:
    try:
        definition = importlib.import_module("chakra.schema.protobuf.et_def_pb2")
    except Exception as error:
        pytest.skip(f"mlc-chakra is not installed, or not for this protobuf: {error}")
    write_chakra(run_of(PLAN), tmp_path)
    meta, *nodes = chakra_messages(tmp_path / "trace.0.et")
    assert definition.GlobalMetadata.FromString(meta).version == "0.0.4"
    types = {definition.Node.FromString(node).type for node in nodes}
    kinds = {definition.NodeType.Name(type_) for type_ in types}
    assert kinds == {"COMP_NODE", "COMM_SEND_NODE", "COMM_RECV_NODE"}


def test_nothing_to_draw(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="scheduler traffic only"):
        aligned(assemble(run_of(PLAN).scheduler))
    with pytest.raises(TraceError, match="scheduler traffic only"):
        write_chakra(assemble(run_of(PLAN).scheduler), tmp_path)
