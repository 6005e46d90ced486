"""A worker that hangs: what every process says and dumps, on request and when the stall ends the
job."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pslite_ext.errors import FAILED_ELSEWHERE
from tests.cluster import cluster, mercury

HANGS = """
import sys, time
import mxnet as mx

kv = mx.kv.create("dist_sync")
value = mx.nd.ones((300,))
kv.init("w", value)
kv.pushpull("w", value)
value.wait_to_read()


def stuck_alone():
    while True:
        time.sleep(0.2)


print("looping", flush=True)
if kv.rank == 1:
    stuck_alone()
kv.pushpull("w", value)
value.wait_to_read()
"""
TIMES = {"MERCURY_STALL_WARN_S": "1", "MERCURY_STALL_TIMEOUT_S": "3"}


@pytest.mark.drawn(1)
@pytest.mark.parametrize("van", ["zmq", "mercury"])
def test_a_stall_ends_the_job_and_dumps(van: str, tmp_path: Path) -> None:
    traces = tmp_path / "traces"
    env = {**TIMES, "MERCURY_TRACE_DIR": str(traces)} if van == "zmq" else TIMES
    with cluster(["-c", HANGS], 2, 1, van=van, env=env) as job:
        waits, hangs = job.workers
        job.wait_until(
            "the end", lambda: waits.code is not None and job.servers[0].code is not None
        )
        says = r"worker 1: worker 0 gives up \(MERCURY_STALL_TIMEOUT_S\): tensor 'w' has waited "
        assert re.search(says + r"for \d+ s: worker 1 has not sent it all", waits.output)
        assert "WaitTimeoutError" in waits.output
        assert waits.code == FAILED_ELSEWHERE
        over = "what worker 1 is doing is in" if van == "zmq" else "=== end of worker 1"
        job.wait_until("its dump", lambda: over in hangs.output)
        for process, stuck in ((waits, "wait_to_read"), (hangs, "stuck_alone")):
            dump = process.output
            if van == "zmq":
                dump = (traces / f"dump_worker_{process.rank}.txt").read_text()
                assert f"what {process.name} is doing is in {traces}/dump" in process.output
            assert "dumped because of a stall" in dump, dump
            assert stuck in dump, dump
            assert "peer server 0: 127.0.0.1:" in dump
            assert re.search(r"tensor 'w'.*: for \d+ s, 0 of \d", dump) or process is hangs


def test_on_request_every_process_dumps_and_the_job_goes_on(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    code = HANGS.replace("while True", f"import os\n    while not os.path.exists({str(seen)!r})")
    with cluster(["-c", code], 2, 1, forked=False) as job:
        job.wait_output("looping")
        for process in job.processes:
            asked = mercury("dump", process.child.pid)
            assert asked.returncode == 0, asked.stderr
            assert f"asked {process.role}" in asked.stdout
        job.wait_until(
            "dumps", lambda: all(f"=== end of {p.role}" in p.output for p in job.processes)
        )
        assert "stuck_alone" in job.workers[1].output
        assert re.search(r"tensor 'w': for \d+ s, 0 of 1 pieces are done", job.workers[0].output)
        assert "dumped because it was asked to" in job.servers[0].output
        seen.touch()
        job.check()


def test_who_cannot_be_asked(tmp_path: Path) -> None:
    asked = mercury("dump", 1)
    assert asked.returncode == 1
    assert "mercury dump: 1: is not a process of a job" in asked.stderr
    assert mercury("dump", "x").returncode == 2
