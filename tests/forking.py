"""Runs scripts in processes forked from one that has imported what takes seconds.

Each line of standard input is a process: script (or -c and code), arguments, environment, log. That
process's number is printed, and, when it has ended, the number and the exit code. Others ask by the
socket that FORKS_SOCKET names (tests/forked.py), with their own three streams instead of a log;
they hear the same there, and their process ends if they do.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import runpy
import select
import signal
import socket
import sys
import types
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

LOOK_S = 0.02
SOCKET = "FORKS_SOCKET"
REQUEST_BYTES_MOST = 1 << 20


def tell(**what: int) -> None:
    print(json.dumps(what), flush=True)


def become(asked: dict[str, Any], streams: Sequence[int]) -> None:
    """In the child: a process of its own, as if it had been started."""
    os.setsid()
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if not streams:
        log = os.open(asked["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        streams = (os.open(os.devnull, os.O_RDONLY), log, log)
    for to, what in enumerate(streams):
        os.dup2(what, to)
    for what in set(streams):
        os.close(what)
    os.environ.clear()
    os.environ.update(asked["env"])
    if "folder" in asked:
        os.chdir(asked["folder"])


def send_to_group(pid: int, number: int) -> None:
    """To all that the process has started, or to itself while it leads no group yet."""
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        os.kill(pid, number)


class Server:
    def __init__(self, asking: Any, path: str) -> None:
        self._asking = asking
        self._listener: socket.socket | None = None
        if path:
            self._listener = socket.socket(socket.AF_UNIX)
            self._listener.bind(path)
            self._listener.listen()
        self._alive: set[int] = set()
        self._askers: dict[int, socket.socket] = {}  # of those who did not ask by a line

    def serve(self) -> dict[str, Any] | None:
        """In each child, returns what it is to run; here, nothing when nobody asks any more."""
        while True:
            waited = [self._asking, *filter(None, [self._listener]), *self._askers.values()]
            for end in select.select(waited, [], [], LOOK_S if self._alive else None)[0]:
                asked = None
                if end is self._asking:
                    line = end.readline()
                    if not line:
                        return None
                    asked = self._fork(json.loads(line))
                elif end is self._listener:
                    asked = self._accept(end)
                else:
                    self._end(end)
                if asked is not None:
                    return asked
            self._reap()

    def _accept(self, listener: socket.socket) -> dict[str, Any] | None:
        asker, _ = listener.accept()
        said, streams, _, _ = socket.recv_fds(asker, REQUEST_BYTES_MOST, 3)
        while said and not said.endswith(b"\n"):
            more = asker.recv(REQUEST_BYTES_MOST)
            said = said + more if more else b""
        asked = None
        if said and len(streams) == 3:
            asked = self._fork(json.loads(said), asker, streams)
        else:  # it has ended
            asker.close()
        for stream in streams if asked is None else ():
            os.close(stream)
        return asked

    def _fork(
        self, asked: dict[str, Any], asker: socket.socket | None = None, streams: Sequence[int] = ()
    ) -> dict[str, Any] | None:
        child = os.fork()
        if child == 0:
            for other in (self._listener, asker, *self._askers.values()):
                if other is not None:
                    other.close()
            become(asked, streams)
            return asked
        self._alive.add(child)
        if asker is not None:
            self._askers[child] = asker
        self._tell(child, started=child)
        return None

    def _tell(self, child: int, **what: int) -> None:
        asker = self._askers.get(child)
        if asker is None:
            tell(**what)
        else:
            with suppress(OSError):  # it has ended
                asker.sendall(json.dumps(what).encode() + b"\n")

    def _end(self, asker: socket.socket) -> None:
        """Who asked has ended: so does what it stood for."""
        (child,) = (child for child, its in self._askers.items() if its is asker)
        send_to_group(child, signal.SIGKILL)
        os.waitpid(child, 0)
        self._alive.remove(child)
        self._askers.pop(child).close()

    def _reap(self) -> None:
        child, status = os.waitpid(-1, os.WNOHANG) if self._alive else (0, 0)
        if child:
            self._alive.remove(child)
            self._tell(child, ended=child, code=os.waitstatus_to_exitcode(status))
            if child in self._askers:
                self._askers.pop(child).close()


def run(script: str, words: list[str]) -> None:
    if script == "-c":
        code, *words = words
        sys.argv[:] = [script, *words]
        sys.modules["__main__"] = main = types.ModuleType("__main__")
        exec(compile(code, "<string>", "exec"), main.__dict__)
    else:
        sys.argv[:] = [script, *words]
        runpy.run_path(script, run_name="__main__")


def fork_for_who_asks(begin: Callable[[], object] = lambda: None) -> None:
    """`begin` is called in each child, before its script."""
    gc.freeze()  # what is here already is no garbage: no child copies it to see that, at its end
    with open(0, "rb", buffering=0, closefd=False) as asking:  # nothing waits in a buffer
        asked = Server(asking, os.environ.get(SOCKET, "")).serve()
    if asked is not None:
        begin()
        run(asked["script"], asked["words"])
