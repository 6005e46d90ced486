"""Strangers at the door for packets: they are shown out, and the job goes on training."""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import struct
from pathlib import Path

import pytest

from tests.cluster import Process, job_that_trains_on

CHALLENGE_BYTES = 40
SILENT = 2000


def receive(sock: socket.socket, size: int) -> bytes:
    """So many bytes, or fewer if the other end hangs up."""
    data = b""
    with contextlib.suppress(ConnectionError):
        while len(data) < size and (more := sock.recv(size - len(data))):
            data += more
    return data


def door(server: Process) -> int:
    """The port at which a server takes packets: the one that greets with our challenge."""
    for port in server.listening():
        with connect(port) as sock:
            if receive(sock, 4) == b"MRCY":
                return port
    raise AssertionError(f"{server.name} takes no packets")


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=20)


def hello(version: int, worker: int = 0) -> bytes:
    """As a worker of this job would say it, but for the proof that it knows the token."""
    terms = struct.pack("<QIIIIHHQQBB", 1, worker, 0, 2, 2, 0, 1, 65536, 0, 0, 0)
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
        for data in (os.urandom(116), b"GET / HTTP/1.1\r\n\r\n", hello(9), hello(1)):
            shown_out(port, data)
        half = connect(port)
        half.sendall(hello(1)[:60])
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
            job.wait_until("places", lambda: len(list(fds.iterdir())) < 400)
            shown_out(port, hello(9))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
