"""A process with more than 1,024 open files answers Ctrl-C and `mercury dump` as any other."""

from __future__ import annotations

import fcntl
import os
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from pslite_ext import _core, dump
from pslite_ext.job import interrupt

HIGH = 1100


class Enough(Exception):
    """What the thread goes on with is not of interest."""


def enough(*_: object) -> None:
    raise Enough


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """Its reading end has a high number."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 2 * HIGH)), hard))
    low, writing = os.pipe2(os.O_NONBLOCK)
    reading = fcntl.fcntl(low, fcntl.F_DUPFD, HIGH)
    yield reading, writing
    for fd in (low, writing, reading):
        os.close(fd)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_ctrl_c_is_heard(pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = pipe
    monkeypatch.setattr(interrupt, "_hears", reading)
    monkeypatch.setattr(interrupt, "_GRACE_S", 0.0)
    monkeypatch.setattr(signal, "getsignal", lambda _: interrupt._on_interrupt)
    monkeypatch.setattr(_core, "finish", enough)
    os.write(writing, bytes([signal.SIGINT]))
    with pytest.raises(Enough):
        interrupt._listen()


def test_it_dumps(pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    reading, writing = pipe
    monkeypatch.setattr(_core, "dumped", enough)
    os.write(writing, b"stacks of all threads")
    with pytest.raises(Enough):
        dump._listen("server", str(tmp_path), reading, False)
    assert "stacks of all threads" in (tmp_path / "dump_server.txt").read_text()
