"""Real files: other tools' headers and spacing, records out of order, torn ends, rubbish."""

from __future__ import annotations

import contextlib
import re
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracer.errors import TraceError
from tracer.format.columns import parse_lines
from tracer.format.line import LineError, parse_line
from tracer.format.reader import read_trace
from tracer.format.record import COLUMNS, same
from tracer.format.writer import text_pieces, write_trace
from tracer.run import read_run
from tracer.synthetic import Plan, write_run

EXCERPT = """\
id src dst length num_pp operation op_id dep_type d_time time_sec time_usec id_dep
0 0 2 25 0 OP:= SendCom_TO_Servers
1 0 2 25 0 OP:= SendCom_To_Servers
2 0 2 2042 -15 OP:= Push_Send_Worker 0-0-s0 0 0 1516622729 481409 -1
3 2 0 28 -15 OP:= Push_Recv_Worker 0-1-s0 1 13820 1516622729 495229 0-0-s0
36 0 2 20033 21 OP:= Push_Send_Worker 6-4-s0 4 70213 1516622729 812819 (3-s0.)
42 2 0 19 21 OP:= Push_Recv_Worker 6-5-s0 1 4216 1516622729 817035 6-4-s0
43 0 2 28 22 OP:= Pull_Send_Worker 6-6-s0 2 306 1516622729 817341 6-5-s0
54 2 0 20036 22 OP:= Pull_Recv_Worker 6-7-s0 3 6817 1516622729 824158 6-6-s0
"""
OTHERS_HEADER = """\
==============
The number of workers := 2
Num_Server = 1
Host name: node-7
my role: chief
==============
"""


def written(folder: Path, text: str, name: str = "trace_worker_0.txt") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


def test_the_published_excerpt(tmp_path: Path) -> None:
    trace = read_trace(written(tmp_path, OTHERS_HEADER + EXCERPT))
    r = trace.records
    assert (trace.header.servers, trace.header.host) == (1, "node-7")
    assert (trace.header.role, trace.header.rank) == ("worker", 0)
    assert r.id.tolist() == [0, 1, 2, 3, 36, 42, 43, 54]
    assert r.length.tolist()[2:] == [2042, 28, 20033, 19, 28, 20036]
    assert r.num_pp.tolist() == [0, 0, -15, -15, 21, 21, 22, 22]
    assert r.op_num.tolist()[2:] == [0, 1, 4, 5, 6, 7]
    assert int(r.time[4]) == 1516622729812819
    assert [r.lists[i] for i in r.dep_num[r.dep_kind == 2]] == ["(3-s0.)"]
    assert trace.iteration().tolist() == [-1, -1, -1, -1, 0, 0, 0, 0]


def test_without_any_header(tmp_path: Path) -> None:
    body = EXCERPT.split("\n", 1)[1]
    trace = read_trace(written(tmp_path, body))
    assert (trace.header.workers, trace.header.servers) == (2, 1)
    assert len(trace.records) == 8


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (" ", "\t"),
        (" ", "   "),
        ("OP:= ", "OP:="),
        ("\n", "  \n"),
        ("\n", "\r\n"),
        ("\n", "\n\n"),
    ],
)
def test_other_spacing(tmp_path: Path, old: str, new: str) -> None:
    body = EXCERPT.split("\n", 1)[1]
    plain = read_trace(written(tmp_path, body))
    odd = read_trace(written(tmp_path, body.replace(old, new)))
    assert same(plain, odd)


@pytest.mark.parametrize("head", ["", OTHERS_HEADER])
def test_a_byte_order_mark_belongs_to_no_line(tmp_path: Path, head: str) -> None:
    text = head + EXCERPT.split("\n", 1)[1]
    plain = read_trace(written(tmp_path, text))
    marked = read_trace(written(tmp_path, "\ufeff" + text))
    assert len(marked.records) == 8
    assert same(plain, marked)


@pytest.mark.parametrize(("operation", "says"), [(-1, "below 0"), (100, "of a newer version")])
def test_an_operation_that_is_none(tmp_path: Path, operation: int, says: str) -> None:
    trace = read_trace(written(tmp_path, OTHERS_HEADER + EXCERPT))
    trace.records.operation[3] = operation
    path = tmp_path / "trace_worker_0.dlc"
    write_trace(trace, path)
    with pytest.raises(TraceError, match=rf"trace_worker_0\.dlc: .*{says}"):
        read_trace(path)


def test_out_of_order_and_twice(tmp_path: Path) -> None:
    lines = EXCERPT.splitlines(keepends=True)
    text = "".join([*lines[:5], lines[6], lines[5], lines[6], *lines[7:]])
    trace = read_trace(written(tmp_path, text))
    assert trace.records.id.tolist() == [0, 1, 2, 3, 42, 36, 42, 43, 54]
    assert any("is not above the one before it" in str(p) for p in trace.problems)


@pytest.mark.parametrize(
    ("ids", "says"),
    [
        ([18, 19, 19, 20], None),  # the second writer's count was lost
        ([18, 19, 19, 21], None),  # it was not
        ([19, 19, 19, 22, 23], None),
        ([19, 19, 21, 21, 23], None),
        ([18, 19, 19, 22], "id 22 leaves a gap"),
        ([19, 19, 20, 22], "id 22 leaves a gap"),
        ([18, 20], "id 20 leaves a gap"),
        ([19, 19, 18, 20], "id 18 is not above the one before it"),
    ],
)
def test_ids_that_two_writers_took(tmp_path: Path, ids: list[int], says: str | None) -> None:
    rest = EXCERPT.splitlines()[1].split(" ", 1)[1]
    trace = read_trace(written(tmp_path, "".join(f"{number} {rest}\n" for number in ids)))
    assert trace.records.id.tolist() == ids
    told = [str(problem) for problem in trace.problems if ": id " in str(problem)]
    assert any(says in text for text in told) if says else told == []
    binary = tmp_path / "trace_worker_0.dlc"
    write_trace(trace, binary)
    assert [problem.text for problem in read_trace(binary).problems] == [
        problem.text for problem in trace.problems
    ]
    if says:
        with pytest.raises(TraceError, match=r"trace_worker_0\.dlc: id"):
            read_trace(binary, strict=True)


def test_a_torn_last_line_is_left_out(tmp_path: Path) -> None:
    whole = OTHERS_HEADER + EXCERPT
    start = whole.index("\n54 ") + 1
    for cut in range(start + 1, len(whole)):
        trace = read_trace(written(tmp_path, whole[:cut]))
        assert len(trace.records) == 7
        assert "torn" in str(trace.problems[0])
    with pytest.raises(TraceError, match=r"trace_worker_0.txt:15: the last line is torn"):
        read_trace(tmp_path / "trace_worker_0.txt", strict=True)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("hello", "no 'OP:='"),
        ("1 2 3", "no 'OP:='"),
        ("60 0 2 5 1 OP:= Push_Send_Worker", "ends after its operation"),
        ("60 0 2 5 1 OP:= Fetch 0-0-s0 0 0 1 2 -1", "unknown operation 'Fetch'"),
        ("60 0 x 5 1 OP:= Push_Send_Worker 0-0-s0 0 0 1 2 -1", "'x' as dst"),
        ("60 0 2 5 1 OP:= Push_Send_Worker 0-0-q0 0 0 1 2 -1", "'0-0-q0' where"),
        ("60 0 2 5 1 OP:= Push_Send_Worker 0-0-s0 0 0 1 2 (3-s0)", "dependency list"),
        ("60 0 2 5 1 OP:= Push_Send_Worker 0-0-s0 0 0 1 2000000 -1", "no valid time"),
        ("60 0 9999999999 5 1 OP:= Push_Send_Worker 0-0-s0 0 0 1 2 -1", "out of range"),
        ("60 0 2 5 1 OP:= Push_Send_Worker 0-0-s0 0 0 1 2", "11 columns"),
        ("60 0 2 5 1 OP:= Push_Send_Worker 0-0-s0 0 0 1 2 -1 7", "13 columns"),
        ("99999999999999999999 0 2 5 1 OP:= Push_Send_Worker 0-0-s0 0 0 1 2 -1", "not a number"),
    ],
)
def test_bad_lines_are_named(tmp_path: Path, line: str, says: str) -> None:
    path = written(tmp_path, EXCERPT + line + "\n")
    trace = read_trace(path)
    assert len(trace.records) == 8
    assert trace.problems[0].line == 10
    assert says in trace.problems[0].text
    with pytest.raises(TraceError, match=r"trace_worker_0\.txt:10: "):
        read_trace(path, strict=True)


def test_many_bad_lines_are_counted(tmp_path: Path) -> None:
    trace = read_trace(written(tmp_path, EXCERPT + "rubbish\n" * 500))
    *listed, more, gap = trace.problems
    assert len(listed) == 100
    assert "400 more such places" in str(more)
    assert "leaves a gap" in str(gap)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b"\x7fELF\x02\x01\x01\x00", "is not a trace: byte 0 is 0x7f"),
        (b"PK\x03\x04", "is not a trace"),
        (b"hello\nworld\n" * 2000, "no record in its first"),
        (b"hello", "torn"),
        (b"\x0a\x06\x0a\x04DLC1\x12\x05", "breaks off"),
        (b"\x0a\x06\x0a\x04DLC1\xff\xff\xff", "ends inside a number"),
    ],
)
def test_files_that_are_no_traces(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "trace_worker_0.txt"
    path.write_bytes(content)
    with pytest.raises(TraceError, match=says) as caught:
        read_trace(path, strict=True)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_directories(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="there is no such file"):
        read_run(tmp_path / "nowhere")
    with pytest.raises(TraceError, match="holds no trace"):
        read_run(tmp_path)
    one, two = tmp_path / "one", tmp_path / "two"
    write_run(Plan(iterations=1, run="first"), one)
    write_run(Plan(iterations=1, run="second"), two)
    (two / "trace_worker_1.txt").replace(one / "trace_worker_1.txt")
    with pytest.raises(TraceError, match="is of another run .* its run is second, not first"):
        read_run(one)
    with pytest.raises(TraceError, match="one file a node"):
        read_run([two / "trace_worker_0.txt", two / "trace_worker_0.txt"])


def test_one_bad_file_does_not_hide_the_others(tmp_path: Path) -> None:
    write_run(Plan(iterations=1), tmp_path)
    (tmp_path / "trace_worker_1.txt").write_bytes(b"")
    run = read_run(tmp_path)
    assert len(run.workers) == 1
    assert "is empty" in str(run.problems[0])
    with pytest.raises(TraceError, match="is empty"):
        read_run(tmp_path, strict=True)


@pytest.mark.parametrize("unsaid", ["rank:", ("rank:", "role:")])
def test_whose_a_file_is_by_its_records(tmp_path: Path, unsaid: str | tuple[str, ...]) -> None:
    write_run(Plan(workers=3, servers=2, iterations=1), tmp_path)
    for node in ("worker_0", "worker_2", "server_0", "server_1"):
        whole = tmp_path / f"trace_{node}.txt"
        lines = whole.read_text().splitlines(True)
        text = "".join(line for line in lines if not line.startswith(unsaid))
        assert same(read_trace(written(tmp_path, text, "node.txt")), read_trace(whole))
    moved = re.sub(r"\n(\d+) 4 (\d .* Pull_Send)", r"\n\1 3 \2", text, count=1)
    with pytest.raises(TraceError, match=r"node\.txt: says nowhere whose .* nodes 3, 4"):
        read_trace(written(tmp_path, moved, "node.txt"))


def test_the_binary_form_is_preferred(tmp_path: Path) -> None:
    write_run(Plan(iterations=1), tmp_path)
    write_run(Plan(iterations=1), tmp_path, binary=True)
    assert {Path(trace.path).suffix for trace in read_run(tmp_path).all} == {".dlc"}


BYTES = st.binary(min_size=1, max_size=4)


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_damaged_lines_are_read_as_a_careful_reader_reads_them(data: st.DataObject) -> None:
    """The fast way takes no line that the careful one refuses, and reads the same from it."""
    line = data.draw(st.sampled_from(EXCERPT.splitlines()[1:]))
    place = data.draw(st.integers(0, len(line)))
    rubbish = data.draw(
        st.text(st.sampled_from("0123456789-() .swh\t:=PSx"), min_size=0, max_size=3)
    )
    cut = data.draw(st.integers(0, 3))
    damaged = line[:place] + rubbish + line[place + cut :]
    raw = np.frombuffer((damaged + "\n").encode(), np.uint8)
    lists: dict[bytes, int] = {}
    fast = parse_lines(raw, lists)
    if not len(fast.regular):
        return
    careful: dict[bytes, int] = {}
    row = parse_line(damaged, careful)
    assert {name: int(fast.columns[name][0]) for name, _ in COLUMNS} == row
    assert lists == careful


@given(text=st.text(max_size=200))
@settings(max_examples=100, deadline=None)
def test_careful_reading_never_fails_otherwise(text: str) -> None:
    with contextlib.suppress(LineError):
        parse_line(text.replace("\n", " "), {})


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_damaged_files_are_traces_or_errors(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        suffix = data.draw(st.sampled_from((".txt", ".dlc")))
        path = Path(folder) / f"trace_worker_0{suffix}"
        trace = read_trace(written(Path(folder), OTHERS_HEADER + EXCERPT))
        write_trace(trace, path)
        content = bytearray(path.read_bytes())
        for _ in range(data.draw(st.integers(1, 4))):
            place = data.draw(st.integers(0, len(content) - 1))
            content[place : place + data.draw(st.integers(0, 4))] = data.draw(BYTES)
        path.write_bytes(bytes(content))
        try:
            found = read_trace(path)
        except TraceError as error:
            said = str(error)
        else:
            said = str(path) + "".join(text_pieces(found))
        assert str(path) in said
