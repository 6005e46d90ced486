"""Traces of real jobs: right to the last byte, whatever happens to the job or the disk."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from pslite_ext.trace_settings import PROBE_BYTES
from tests.cluster import Cluster, cluster, small_disk
from tests.normal_trace import normal
from tests.trace.synthetic_runs import beside_the_payload
from tracer.analysis import sections
from tracer.check import check_run
from tracer.clocks import aligned
from tracer.format.record import CODE
from tracer.run import Run, read_run
from tracer.synthetic import LENET5, Plan, synthesize
from tracer.synthetic.shape import shape

HERE = Path(__file__).parent
GOLDEN = HERE.parent / "golden" / "trace"
EXAMPLES = HERE.parents[1] / "examples"
# `loop STEPS`: so many sums of two keys; `report` and `trace` are there to be called between them.
LOOP = """
import sys, time
import mxnet as mx
kv = mx.kv.create('dist_sync')
arrays = [mx.nd.ones((200,)), mx.nd.ones((3000,))]
for key, array in enumerate(arrays):
    kv.init(key, array)
    kv.pull(key, array)
mx.nd.waitall()
for step in range(int(sys.argv[1])):
    {between}
    for key, array in enumerate(arrays):
        kv.pushpull(key, mx.nd.ones(array.shape), out=array, priority=-key)
    mx.nd.waitall()
print('done', flush=True)
"""


def traced(
    folder: Path,
    command: list[str],
    workers: int = 2,
    servers: int = 1,
    van: str = "zmq",
    env: dict[str, str] | None = None,
) -> Run:
    """A job's traces, which must be without a fault."""
    settings = {"MERCURY_TRACE_DIR": str(folder), **(env or {})}
    with cluster(command, workers, servers, van=van, env=settings) as job:
        job.check()
    run = read_run(folder, strict=True)
    assert check_run(run) == []
    assert all(trace.complete for trace in run.all)
    return run


@pytest.mark.parametrize(("mode", "servers"), [("zmq", 1), ("mercury", 2)])
def test_lenet(mode: str, servers: int, tmp_path: Path) -> None:
    """After a wanted change: tests/golden/trace/README.md says how to renew the golden files."""
    folder = tmp_path / "traces"
    script = [str(HERE / "capture_lenet.py")]
    env = {"MERCURY_PACKET_BYTES": "65536", "PYTHONPATH": str(EXAMPLES)}
    run = traced(folder, script, servers=servers, van=mode, env=env)
    names = [f"trace_{t.header.role}_{t.header.rank}.txt" for t in run.traces]
    golden = GOLDEN / f"captured_{mode}"
    assert sorted(names) == sorted(path.name for path in golden.iterdir())
    for name, trace in zip(names, run.traces):
        assert normal(trace) == (golden / name).read_text(), name
    if mode == "zmq":
        made_up = {t.path: t for t in synthesize(Plan(iterations=2, asks_ahead=True))}
        for trace in run.traces:
            assert shape(trace) == shape(made_up[Path(trace.path).stem])
        # Payload and a constant of its own for each operation.
        assert [len(extra) for extra in beside_the_payload(run).values()] == [1, 1, 1, 1]
    commands = [t.header.node for t in run.all if CODE["SendCom_TO_Servers"] in t.records.operation]
    assert commands == ["worker 0"]
    numbers_of_dispatch(run)
    traffic_with_the_scheduler(run)
    table, _ = aligned(run)
    assert [part.name for part in sections(run, table)]
    assert [key.name for key in run.keys().values()] == [tensor.name for tensor in LENET5]


def numbers_of_dispatch(run: Run) -> None:
    """Initial pushes take none: initial pulls are 1 to 8, training goes on from there."""
    r, training = run.workers[0].records, run.workers[0].iteration() >= 0
    pulls = r.is_data & ~training & (r.operation == CODE["Pull_Recv_Worker"])
    assert sorted(set(r.num_pp[pulls].tolist())) == [*range(1, 9)]
    pushes = training & (r.operation == CODE["Push_Send_Worker"])
    assert r.num_pp[pushes].min() == 9
    # Each command has its reply.
    sent, heard = (r.operation == CODE[f"SendCom_{to}_Servers"] for to in ("TO", "To"))
    assert sorted(r.dst[sent].tolist()) == sorted(r.src[heard].tolist())
    assert (r.dst[heard] == 0).all()


def traffic_with_the_scheduler(run: Run) -> None:
    nodes = run.header.workers + run.header.servers
    assert len(run.scheduler) == nodes + 1
    for trace in run.scheduler:
        seen = set(trace.records.operation.tolist())
        registered = (trace.records.operation // 2 == CODE["Register_Send"] // 2).sum()
        if trace.header.role == "scheduler":
            assert registered == 2 * nodes
            assert {CODE["Heartbeat_Recv"], CODE["Heartbeat_Send"], CODE["Terminate_Recv"]} <= seen
            continue
        assert registered == 2
        assert {CODE["Heartbeat_Send"], CODE["Heartbeat_Recv"]} <= seen
        ends = "Terminate_Send" if trace.header.role == "worker" else "Terminate_Recv"
        assert CODE[ends] in seen
    # Every node has asked the scheduler for the time.
    for trace in run.traces:
        clocks = [note.words for note in trace.notes if note.words[0] == "clock"]
        assert clocks
        assert abs(int(clocks[0][4])) <= int(clocks[0][6]) + 1000


def test_steps_of_the_settings_and_of_the_script(tmp_path: Path) -> None:
    """Numbers count from the job's start: step 3 begins with 4 + 3 * 4 on worker 0."""
    between = "step in (6, 9) and (time.sleep(0.2), kv.trace(step == 9), time.sleep(0.2))"
    script = ["-c", LOOP.format(between=between), "14"]
    env = {"MERCURY_TRACE_STEPS": "3:12", "MERCURY_TRACE_FORMAT": "binary"}
    run = traced(tmp_path, script, env=env)
    worker = run.workers[0]
    assert int(worker.records.op_num.min()) == 16
    steps = sorted(set(worker.iteration().tolist()))
    # On a busy machine the switch may come a little late.
    assert {3, 4, 5, 11} <= set(steps) < set(range(3, 12))
    texts = [note.text for note in worker.notes]
    assert "from step 3" in texts
    assert "to step 12" in texts
    assert sum(text.startswith("from step ") for text in texts) == 2


@pytest.fixture
def endless(tmp_path: Path) -> Iterator[Cluster]:
    script = ["-c", LOOP.format(between="time.sleep(0.01)"), "100000"]
    (tmp_path / "off").touch()
    env = {"MERCURY_TRACE_DIR": str(tmp_path)}
    with cluster(script, 2, 1, van="mercury", env=env) as job:
        yield job


def test_killed_while_it_is_switched_off_and_on(endless: Cluster, tmp_path: Path) -> None:
    """By a file in the directory; a killed process leaves what it had."""

    def says(text: str, times: int = 1) -> bool:
        files = list(tmp_path.glob("trace_worker_*.txt"))
        return len(files) == 2 and all(file.read_text().count(text) >= times for file in files)

    endless.wait_until("off from the start", lambda: says("# to step 0"))
    (tmp_path / "off").unlink()
    endless.wait_until("records", lambda: says("Push_Send_Worker"))
    for file in tmp_path.glob("trace_worker_*.txt"):
        before, _, _ = file.read_text().partition("# from step")
        assert "Push_Send_Worker" not in before
    (tmp_path / "off").touch()
    endless.wait_until("off", lambda: says("# to step", 2))
    (tmp_path / "off").unlink()
    endless.wait_until("on again", lambda: says("# from step", 2))
    endless.workers[1].kill(signal.SIGKILL)
    endless.wait()
    run = read_run(tmp_path)
    assert [f for f in check_run(run) if f.severity == "error"] == []
    complete = {trace.header.node: trace.complete for trace in run.traces}
    assert complete == {"worker 0": True, "worker 1": False, "server 0": True}
    assert all(len(trace.records) > 8 for trace in run.traces)
    why = {t.header.node: n.text for t in run.traces for n in t.notes if n.words[0] == "failed"}
    assert sorted(why) == ["server 0", "worker 0"]
    assert all("worker 1" in text for text in why.values())


def test_a_full_disk_stops_the_trace_and_not_the_training(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    with small_disk(disk, 3 * PROBE_BYTES):
        loop = LOOP.format(between="step % 100 or time.sleep(0.5)")
        script = ["-c", loop.replace("dist_sync", "dist_async"), "500"]
        env = {"MERCURY_TRACE_DIR": str(disk)}
        with cluster(script, 2, 1, env=env) as job:
            job.wait_output("done")
            job.check()
            for process in (*job.workers, *job.servers):
                told = [line for line in process.output.splitlines() if "trace" in line]
                assert len(told) <= 1, told
                assert all("No space left on device" in line for line in told), told
            assert any("the trace of this node ends here" in p.output for p in job.processes)
        run = read_run(disk)
        assert [f for f in check_run(run) if f.severity == "error"] == []
        assert any(not trace.complete for trace in run.traces)
        assert run.training == "asynchronous"
