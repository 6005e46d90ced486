"""Strangers at the doors, of packets and of the control plane: they are shown out, and the job goes
on training."""

from __future__ import annotations

import contextlib
import os
import resource
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import Cluster, Process, cluster, job_that_trains_on
from tests.faults.doors import (
    CHALLENGE_BYTES as CONTROL_CHALLENGE_BYTES,
)
from tests.faults.doors import (
    MORE,
    Listener,
    connect,
    enter,
    flood,
    frame,
    greeted,
    hello,
    listener,
    receive,
)

CHALLENGE_BYTES = 40
SILENT = 2000
AT_THE_DOOR = 32
TOKEN = "known to who was let in"
MB = 1 << 20
NETWORK_HOLDS = 64 * MB  # at most, in both ends' buffers, of what nobody reads


def door(server: Process) -> int:
    """The port at which a server takes packets: the one that greets with our challenge."""
    for port in server.listening():
        if greeted(port, b"MRCY"):
            return port
    raise AssertionError(f"{server.name} takes no packets")


def data_hello(version: int, worker: int = 0) -> bytes:
    """As a worker of this job would say it, but for the proof that it knows the token."""
    terms = struct.pack("<QIIIIHHQQBBB", 1, worker, 0, 2, 2, 0, 1, 65536, 0, 0, 0, 0)
    return b"MRCY" + struct.pack("<H", version) + terms + os.urandom(32) + os.urandom(32)


def shown_out(port: int, data: bytes) -> None:
    """Challenged, and then cut off without another word."""
    with connect(port) as sock:
        assert receive(sock, CHALLENGE_BYTES)[:4] == b"MRCY"
        sock.sendall(data)
        assert receive(sock, 1) == b""


def test_what_strangers_say(tmp_path: Path) -> None:
    with job_that_trains_on(tmp_path, "mercury") as job:
        port = door(job.servers[0])
        for data in (os.urandom(116), b"GET / HTTP/1.1\r\n\r\n", data_hello(9), data_hello(1)):
            shown_out(port, data)
        half = connect(port)
        half.sendall(data_hello(1)[:60])
        flood = connect(port)
        with contextlib.suppress(OSError):
            flood.sendall(os.urandom(1 << 20))
        text = job.servers[0].output
        assert "does not speak this protocol" in text, job.report()
        half.close()
        flood.close()


def test_strangers_who_say_nothing(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < SILENT + 100:
        pytest.skip(f"only {hard} file descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, SILENT + 100), hard))
    try:
        with job_that_trains_on(tmp_path, "mercury") as job, contextlib.ExitStack() as held:
            port = door(job.servers[0])
            fds = Path(f"/proc/{job.servers[0].child.pid}/fd")
            for _ in range(SILENT):
                held.enter_context(connect(port))
            # Those who came late have taken the places of those who came early.
            job.wait_until("places", lambda: len(list(fds.iterdir())) < 200)
            shown_out(port, data_hello(9))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def control_doors(job: Cluster) -> Iterator[tuple[Process, int]]:
    """Where each process listens for control messages."""
    for process in job.processes:
        ports = [port for port in process.listening() if greeted(port, b"MRCC")]
        assert len(ports) == 1, f"{process.name} listens on {ports}"
        yield process, ports[0]


def most_resident(process: Process) -> int:
    """The most memory that it has had at once."""
    status = Path(f"/proc/{process.child.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) << 10


def forget_most_resident(process: Process) -> None:
    """From here on: what it needed to start is more than what it holds now."""
    Path(f"/proc/{process.child.pid}/clear_refs").write_text("5")


def plain_frames(port: int) -> int:
    """ZeroMQ's own handshake, with a password of 200 MB."""
    with connect(port) as sock:
        with contextlib.suppress(OSError):
            sock.sendall(b"\xff" + bytes(8) + b"\x7f\x03\x00PLAIN".ljust(22, b"\0") + bytes(32))
            sock.sendall(b"\x06" + struct.pack(">Q", 200 * MB))
        return flood(sock, 200 * MB)


def endless_message(port: int) -> int:
    """From somebody who was let in: parts without end."""
    with enter(port, TOKEN) as sock:
        sent = 0
        with contextlib.suppress(OSError):
            while sent < 400 * MB:
                sock.sendall(frame(MB // 2, MORE) + bytes(MB // 2))
                sent += MB // 2
        return sent


def large_frame(port: int) -> int:
    with enter(port, TOKEN) as sock:
        with contextlib.suppress(OSError):
            sock.sendall(frame(200 * MB))
        return flood(sock, 200 * MB)


def test_nobody_makes_us_hold_more_than_a_few_megabytes(tmp_path: Path) -> None:
    with job_that_trains_on(tmp_path, env={"MERCURY_JOB_TOKEN": TOKEN}) as job:
        for process, port in control_doors(job):
            forget_most_resident(process)
            before = most_resident(process)
            for _ in range(3):
                assert plain_frames(port) < NETWORK_HOLDS
            assert large_frame(port) < NETWORK_HOLDS
            assert endless_message(port) < NETWORK_HOLDS + 17 * MB  # so many parts
            grown = most_resident(process) - before
            assert grown < 20 * MB, f"{process.name} has grown by {grown >> 20} MB"
        for process in job.processes:
            assert "it speaks plain ZeroMQ, as stock MXNet does" in process.output, job.report()


def test_who_is_slow_or_one_too_many(tmp_path: Path) -> None:
    """He has three seconds, and the place of whoever came before him."""
    with job_that_trains_on(tmp_path, env={"MERCURY_JOB_TOKEN": TOKEN}) as job:
        for process, port in control_doors(job):
            if process.rank != 0:
                continue
            slow = connect(port)
            slow.sendall(hello(receive(slow, CONTROL_CHALLENGE_BYTES), TOKEN)[:50])
            fds = Path(f"/proc/{process.child.pid}/fd")
            with contextlib.ExitStack() as held:
                crowd = [held.enter_context(connect(port)) for _ in range(5 * AT_THE_DOOR)]
                for sock in crowd[:AT_THE_DOOR]:
                    assert receive(sock, 100)[CONTROL_CHALLENGE_BYTES:] == b""
                left = len(list(fds.iterdir()))
                assert left < 4 * AT_THE_DOOR, f"{process.name} holds {left} descriptors"
                enter(port, TOKEN).close()
                for sock in crowd[-AT_THE_DOOR:]:  # they say nothing
                    assert receive(sock, 100)[CONTROL_CHALLENGE_BYTES:] == b""
            assert receive(slow, 1) == b""
            slow.close()


JOINS = """
import os, sys
if os.environ['DMLC_ROLE'] != 'scheduler':
    os.environ['DMLC_PS_ROOT_PORT'] = sys.argv[1]
import mxnet as mx
kv = mx.kv.create('dist_sync')
x = mx.nd.ones((5,))
kv.init('w', x)
kv.pushpull('w', x, out=x)
assert x.asnumpy().tolist() == [2] * 5, x
print('summed')
"""


@pytest.fixture(scope="module")
def recorder() -> Iterator[Listener]:
    """Has heard a whole job, of the token that the others have."""
    with listener() as between:
        with cluster(["-c", JOINS, str(between.port)], 2, 1, token=TOKEN) as job:
            between.lead_to(job.port)
            job.check()
        assert sum(len(asked) > 300 for asked in between.asked) >= 3  # more than a handshake
        yield between


def test_nothing_that_was_recorded_is_believed(recorder: Listener) -> None:
    """Of another job with the same token: its nodes' registrations, and its scheduler's answers."""
    recorded = [bytes(asked) for asked in recorder.asked]
    recorder.haunt(True)
    with cluster(["-c", JOINS, str(recorder.port)], 2, 1, token=TOKEN) as job:
        recorder.lead_to(job.port)
        nodes = (*job.servers, *job.workers)
        ghost = "no scheduler of this job at 127.0.0.1: it does not know the job token"
        job.wait_until("ghosts", lambda: all(ghost in node.output for node in nodes))
        job.wait_until("the door", lambda: job.port in job.scheduler.listening())
        for asked in recorded:
            with connect(job.port) as sock:
                with contextlib.suppress(OSError):
                    sock.sendall(asked)
                assert receive(sock, 1000)[CONTROL_CHALLENGE_BYTES:] == b""
        recorder.haunt(False)
        job.check()
        assert "it does not know the job token" in job.scheduler.output, job.report()


def test_a_ghost_of_a_scheduler_holds_nobody_up(recorder: Listener) -> None:
    """Only what was recorded of one answers: the node ends when its start time-out is over."""
    recorder.haunt(True)
    env = {"MERCURY_START_TIMEOUT_S": "3"}
    with cluster(["-c", JOINS, str(recorder.port)], 1, 1, token=TOKEN, env=env) as job:
        job.wait()
        for process in (*job.servers, *job.workers):
            assert "did not start the job within 3 s" in process.output, job.report()
