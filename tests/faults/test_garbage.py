"""Strangers at the ports: whatever they send, the job goes on training and finishes."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from pathlib import Path

import pytest

from tests.cluster import Cluster, Process, cluster, job_that_trains_on

zmq = pytest.importorskip("zmq", reason="pyzmq is not installed; run `make test`")

GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00"
CONNECTIONS = 2000
FEW = 8  # files that a process may have opened meanwhile


def send(port: int, data: bytes) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", port), timeout=10)
    with contextlib.suppress(OSError):  # it may be shown the door
        sock.sendall(data)
    return sock


def greeting(mechanism: bytes) -> bytes:
    return GREETING + mechanism.ljust(20, b"\0") + bytes(32)


def raw_bytes(port: int) -> list[socket.socket]:
    held = []
    for size in (1, 2, 10, 64, 1000, 100_000):
        send(port, os.urandom(size)).close()
    held.append(send(port, GREETING[:9]))
    for mechanism in (b"NULL", b"PLAIN", b"CURVE", b"XXXX"):
        held.append(send(port, greeting(mechanism)))
        # Frames that claim to be enormous.
        for flags in (2, 6):
            forged = bytes([flags]) + struct.pack(">Q", 2**62) + b"x" * 1000
            held.append(send(port, greeting(mechanism) + forged))
        send(port, greeting(mechanism) + b"\x04\x05READY").close()
    return held


def forged_meta(command: int) -> bytes:
    """ps-lite's own layout, with sizes that lie: what crashed or stopped it."""
    head, body_size = 0, 2**31 - 1
    meta = struct.pack("<iiiiiiQ", head, body_size, command, 2**30, 0, 0, 0)
    return meta + bytes(200)


def zmq_messages(port: int) -> None:
    context = zmq.Context()
    try:
        for plain in (False, True):
            for kind in (zmq.DEALER, zmq.REQ, zmq.ROUTER):
                sock = context.socket(kind)
                sock.linger = 200
                if kind == zmq.DEALER:
                    sock.identity = b"ps9"
                if plain:
                    sock.plain_username, sock.plain_password = b"mercury", b"guess"
                sock.connect(f"tcp://127.0.0.1:{port}")
                if kind == zmq.ROUTER:
                    continue
                for message in (b"xy", os.urandom(500), forged_meta(1), forged_meta(2)):
                    with contextlib.suppress(zmq.ZMQError):
                        sock.send(message, zmq.NOBLOCK)
    finally:
        context.destroy(linger=200)


def ports_of(job: Cluster) -> list[int]:
    ports = [port for p in [job.scheduler, *job.servers, *job.workers] for port in p.listening()]
    assert job.port in ports
    assert len(ports) >= len(job.processes)
    return ports


@pytest.mark.parametrize("token", ["", "a secret"])
def test_garbage(token: str, tmp_path: Path) -> None:
    held = []
    with job_that_trains_on(tmp_path, env={"MERCURY_JOB_TOKEN": token}) as job:
        for port in ports_of(job):
            held += raw_bytes(port)
            zmq_messages(port)
    for sock in held:
        sock.close()


def knock_often(job: Cluster, process: Process, port: int) -> None:
    most = process.open_files() + FEW
    for _ in range(CONNECTIONS):
        socket.create_connection(("127.0.0.1", port), timeout=10).close()
    job.wait_until("all are closed", lambda: process.open_files() <= most)


def test_many_connections(tmp_path: Path) -> None:
    with job_that_trains_on(tmp_path) as job:
        knock_often(job, job.scheduler, job.port)
        knock_often(job, job.servers[0], job.servers[0].listening()[0])


@pytest.mark.parametrize("van", ["zmq", "mercury"])
def test_wrong_token(van: str) -> None:
    """A node with another token is not let in; it says what may be wrong."""
    env = {"MERCURY_START_TIMEOUT_S": "10"}
    code = (
        "import os\n"
        "if os.environ['DMLC_ROLE'] == 'worker': os.environ['MERCURY_JOB_TOKEN'] = 'wrong'\n"
        "import mxnet as mx\n"
        "mx.kv.create('dist_sync')\n"
    )
    with cluster(["-c", code], 1, 1, van=van, env=env) as job:
        job.wait()
        assert "missing: 1 of 1 workers" in job.scheduler.output, job.report()
        assert "the same job token" in job.workers[0].output, job.report()
