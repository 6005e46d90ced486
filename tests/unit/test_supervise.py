"""Children are heard to their ends, whatever becomes of those who are told."""

from __future__ import annotations

import ctypes
import errno
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pslite_ext.launch.guard import Guard
from pslite_ext.launch.supervise import Child, Supervisor

LIMIT_S = 60
# More than a pipe holds: nobody reads it, and the child stands still.
PRINTS = [sys.executable, "-c", "for i in range(30000): print('line', i)"]


@contextmanager
def supervisor() -> Iterator[Supervisor]:
    result = Supervisor()
    try:
        yield result
    finally:
        result.end()


def test_one_who_cannot_be_told_keeps_nobody_from_ending(monkeypatch: pytest.MonkeyPatch) -> None:
    raised: queue.Queue[type[BaseException]] = queue.Queue()
    monkeypatch.setattr(threading, "excepthook", lambda args: raised.put(args.exc_type))

    def told(line: str) -> None:
        raise BrokenPipeError(errno.EPIPE, line)

    with supervisor() as all_of_them:
        child = all_of_them.start(PRINTS, told=told)
        ended: Child = all_of_them.ended.get(timeout=LIMIT_S)
        assert (ended, ended.returncode) == (child, 0)
    assert raised.get(timeout=LIMIT_S) is BrokenPipeError


def test_a_log_that_is_full_keeps_nobody_from_being_told() -> None:
    lines: list[str] = []
    with supervisor() as all_of_them:
        child = all_of_them.start(PRINTS, log=Path("/dev/full"), told=lines.append)
        assert all_of_them.ended.get(timeout=LIMIT_S) is child
    said = f"(this output is not kept from here on: /dev/full: {os.strerror(errno.ENOSPC)})"
    assert lines.count(said) == 1
    assert [line for line in lines if line != said] == [f"line {i}" for i in range(30000)]


def test_a_guard_ends_whom_it_watches_when_we_are_gone() -> None:
    guard = Guard()
    sleeps = [
        subprocess.Popen(["sleep", str(LIMIT_S)], start_new_session=True, stdout=subprocess.DEVNULL)
        for _ in range(3)
    ]
    for child in sleeps:
        guard.watch(child.pid)
    guard.forget(sleeps[1].pid)
    assert guard._shell is not None
    assert guard._shell.stdin is not None
    guard._shell.stdin.close()
    try:
        assert [sleeps[i].wait(LIMIT_S) for i in (0, 2)] == [-signal.SIGTERM] * 2
        guard._shell.wait(LIMIT_S)
        assert sleeps[1].poll() is None
    finally:
        sleeps[1].kill()
        sleeps[1].wait()


def test_orphans_that_have_ended_are_not_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """They become ours where we are a container's first process."""
    set_child_subreaper = 36
    libc = ctypes.CDLL(None)
    lines: queue.Queue[str] = queue.Queue()
    assert libc.prctl(set_child_subreaper, 1, 0, 0, 0) == 0
    try:
        with supervisor() as all_of_them:
            starts_another = "sleep 600 & echo up; exec sleep 600"
            child = all_of_them.start(["sh", "-c", starts_another], told=lines.put)
            assert lines.get(timeout=LIMIT_S) == "up"
            all_of_them.end(ask_s=LIMIT_S)
            assert child.returncode == -signal.SIGTERM
            assert not child.is_left()
    finally:
        libc.prctl(set_child_subreaper, 0, 0, 0, 0)
