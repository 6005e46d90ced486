"""Writing and reading are each other's inverse, in both forms."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracer.format import record as rec
from tracer.format.protobuf import WireError, packed, unpacked
from tracer.format.reader import read_trace
from tracer.format.record import Header, Note, Records, Trace
from tracer.format.writer import write_trace
from tracer.synthetic import Plan, synthesize
from tracer.synthetic.lengthen import lengthened

ROOT = Path(__file__).resolve().parents[2]
SMALL = st.integers(0, 40)
WORD = st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=1, max_size=8)


@st.composite
def records(draw: st.DrawFn) -> Records:
    lists = draw(st.lists(st.sampled_from(["(3-s0.)", "(-1-w0.7-w12.)", "(1-w0.)"]), unique=True))
    rows: list[dict[str, int]] = []
    count = draw(st.integers(0, 12))
    ident = draw(st.integers(0, 10**12))
    for number in range(count):
        row = {name: 0 for name, _ in rec.COLUMNS}
        row.update(id=ident + number, src=draw(SMALL), dst=draw(SMALL))
        row.update(length=draw(st.integers(0, 10**12)), num_pp=draw(st.integers(-15, 10**9)))
        row["operation"] = draw(st.integers(0, len(rec.OPERATIONS) - 1))
        if row["operation"] not in rec.SETUP_CODES:
            row.update(key=draw(SMALL), op_num=draw(st.integers(-2, 10**6)), node=draw(SMALL))
            row.update(dep_type=draw(st.integers(0, 4)), d_time=draw(st.integers(-5, 10**9)))
            row["time"] = draw(st.integers(0, 2 * 10**15))
            row["dep_kind"] = draw(st.sampled_from((rec.DEP_NONE, rec.DEP_ONE, rec.DEP_LIST)))
            if row["dep_kind"] == rec.DEP_LIST and not lists:
                row["dep_kind"] = rec.DEP_NONE
            if row["dep_kind"] == rec.DEP_LIST:
                row["dep_num"] = draw(st.integers(0, len(lists) - 1))
            if row["dep_kind"] == rec.DEP_ONE:
                row.update(dep_key=draw(SMALL), dep_num=draw(st.integers(-2, 10**6)))
                row["dep_node"] = draw(SMALL)
        rows.append(row)
    return Records.of({name: [row[name] for row in rows] for name, _ in rec.COLUMNS}, lists)


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    held = draw(records())
    workers, servers = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    header = Header(
        role=draw(st.sampled_from(("worker", "server", "scheduler"))),
        rank=draw(SMALL),
        workers=workers,
        servers=servers,
        host=draw(WORD),
        run=draw(WORD),
        mode=draw(st.sampled_from(("zmq", "mercury"))),
        training=draw(st.sampled_from(("synchronous", "asynchronous"))),
        extra=tuple(f"remark {n}: {draw(WORD)}" for n in range(draw(st.integers(0, 2)))),
    )
    places = sorted(draw(st.lists(st.integers(0, len(held)), max_size=4)))
    return Trace(header, held, [Note(place, f"said {draw(WORD)}") for place in places])


@given(trace=traces())
@settings(max_examples=120, deadline=None)
def test_write_read_write_is_the_identity(trace: Trace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        text, binary = Path(folder) / "t.txt", Path(folder) / "t.dlc"
        write_trace(trace, text)
        write_trace(trace, binary)
        from_text = read_trace(text, strict=True)
        from_binary = read_trace(binary, strict=True)
        assert rec.same(from_text, trace)
        assert rec.same(from_binary, trace)
        again, exact = Path(folder) / "again.txt", Path(folder) / "exact.txt"
        write_trace(from_text, again)
        write_trace(from_binary, exact)
        assert again.read_bytes() == text.read_bytes() == exact.read_bytes()
        write_trace(from_text, Path(folder) / "again.dlc")
        assert (Path(folder) / "again.dlc").read_bytes() == binary.read_bytes()


@given(values=st.lists(st.integers(-(2**63), 2**63 - 1), max_size=40))
def test_packed_columns(values: list[int]) -> None:
    column = np.asarray(values, np.int64)
    assert unpacked(memoryview(packed(column))).tolist() == values


@given(data=st.binary(max_size=30))
def test_unpacking_rubbish(data: bytes) -> None:
    with contextlib.suppress(WireError):
        unpacked(memoryview(data))


def test_a_binary_file_that_breaks_off_is_good_up_to_there(tmp_path: Path) -> None:
    trace = lengthened(synthesize(Plan(iterations=3))[0], 60_000)
    whole = tmp_path / "trace_worker_0.dlc"
    write_trace(trace, whole)
    content = whole.read_bytes()
    counts = set()
    for cut in range(100, len(content), len(content) // 40):
        part = tmp_path / "trace_worker_1.dlc"
        part.write_bytes(content[:cut])
        found = read_trace(part)
        count = len(found.records)
        counts.add(count)
        assert found.problems
        assert found.records.time.tolist() == trace.records.time[:count].tolist()
    assert len(counts) > 2


def test_the_published_proto_describes_the_file(tmp_path: Path) -> None:
    """Decoded by Google's own code, compiled from docs/trace.proto."""
    pytest.importorskip("grpc_tools", reason="grpcio-tools is not installed")
    subprocess.run(
        [sys.executable, "-m", "grpc_tools.protoc", f"-I{ROOT / 'docs'}",
         f"--python_out={tmp_path}", "trace.proto"],
        check=True,
    )  # fmt: skip
    trace = synthesize(Plan(iterations=2))[2]
    write_trace(trace, tmp_path / "trace_server_0.dlc")
    script = (
        "import json; import trace_pb2\n"
        "t = trace_pb2.Trace.FromString(open('trace_server_0.dlc', 'rb').read())\n"
        "b = [x for x in t.blocks]\n"
        "print(json.dumps({'role': t.header.role, 'magic': t.header.magic,"
        " 'workers': t.header.workers, 'size': sum(x.size for x in b),"
        " 'op_num': [n for x in b for n in x.op_num], 'notes': [n.text for n in t.notes],"
        " 'lists': [n for x in b for n in x.lists], 'node': [n for x in b for n in x.node]}))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    said: dict[str, Any] = json.loads(answer.stdout)
    assert (said["magic"], said["role"], said["workers"]) == ("DLC1", "server", 2)
    assert said["size"] == len(trace.records)
    assert said["op_num"] == trace.records.op_num.tolist()
    assert said["node"] == trace.records.node.tolist()
    assert said["notes"] == [note.text for note in trace.notes]
    assert sorted(said["lists"]) == sorted(trace.records.lists)


def test_the_page_lists_the_operations_codes() -> None:
    listed = ", ".join(f"`{name}`" for name in rec.OPERATIONS)
    page = (ROOT / "docs" / "trace-format.md").read_text()
    assert f"from 0: {listed}." in " ".join(page.split())


def test_every_operation_has_a_name_that_both_readers_know() -> None:
    assert len(rec.OPERATIONS) == len(set(rec.OPERATIONS))
    data = rec.OPERATIONS[: rec.DATA_OPERATIONS]
    assert all(name.endswith(("_Worker", "_Server")) for name in data)
