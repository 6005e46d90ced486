"""A page in a process that has better things to do: whoever reaches its port harms nothing."""

from __future__ import annotations

import errno
import socket
import socketserver
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from pslite_ext.job import page_server
from pslite_ext.job.page_server import AT_ONCE, PageServer

LIMIT_S = 60


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[PageServer]:
    monkeypatch.setattr(page_server, "LOOK_S", 0.01)
    made = PageServer("127.0.0.1", 0, lambda openmetrics: ("text/plain", f"page {openmetrics}"))
    serves = threading.Thread(target=made.serve_forever, args=(0.01,), daemon=True)
    serves.start()
    yield made
    made.shutdown()
    made.server_close()


def read(server: PageServer, accept: str = "*/*") -> str:
    address = f"http://127.0.0.1:{server.server_port}/metrics"
    asked = urllib.request.Request(address, headers={"Accept": accept})
    with urllib.request.urlopen(asked, timeout=LIMIT_S) as answer:
        return str(answer.read().decode())


def wait_until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_of_many_who_say_nothing_few_are_heard(
    server: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = threading.active_count()
    with ExitStack() as idle:
        # What waits in the kernel is more than it was promised to keep: some wait to be connected.
        for _ in range(AT_ONCE + 4):
            idle.enter_context(socket.create_connection(("127.0.0.1", server.server_port), LIMIT_S))
        wait_until(lambda: len(server._since) == AT_ONCE)
        assert threading.active_count() <= threads + AT_ONCE
        monkeypatch.setattr(page_server, "HEARD_S", 0.0)  # they have had their time
        wait_until(lambda: not server._since)
        monkeypatch.undo()
        assert read(server) == "page False"
    assert read(server, "application/openmetrics-text") == "page True"


def test_without_a_descriptor_it_pauses_and_goes_on(
    server: PageServer, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    takes = socketserver.TCPServer.get_request
    pauses: list[float] = []

    def none_left(self: socketserver.TCPServer) -> tuple[socket.socket, object]:
        if len(pauses) < 2 * AT_ONCE:
            raise OSError(errno.EMFILE, "Too many open files")
        return takes(self)

    monkeypatch.setattr(time, "sleep", pauses.append)
    monkeypatch.setattr(socketserver.TCPServer, "get_request", none_left)
    assert read(server) == "page False"
    assert pauses == [page_server.PAUSE_S] * 2 * AT_ONCE
    assert capfd.readouterr().err == ""


def test_who_hangs_up_is_forgotten(server: PageServer, capfd: pytest.CaptureFixture[str]) -> None:
    for said in (b"", b"GET /metrics HTTP/1.1\r\nHo", b"\0" * 1000):
        with socket.create_connection(("127.0.0.1", server.server_port), LIMIT_S) as stranger:
            stranger.sendall(said)
            stranger.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    wait_until(lambda: not server._since)
    assert read(server) == "page False"
    assert capfd.readouterr().err == ""
