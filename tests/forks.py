"""The other side of tests/forking.py: asks for processes, and hears how they end."""

from __future__ import annotations

import atexit
import functools
import json
import os
import queue
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from subprocess import CompletedProcess

from pslite_ext.launch.supervise import Supervisor
from tests.forking import SOCKET, send_to_group

FOLDER = Path(__file__).resolve().parent
GONE_WITHIN_S = 10.0
RUN_LIMIT_S = 60.0


class Forked:
    """A process that is not this one's child, as far as tests handle one."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.code: int | None = None

    def poll(self) -> int | None:
        return self.code

    def send_signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            send_to_group(self.pid, number)


class Forks:
    """The process that forks; it lives as long as this one."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._started: queue.SimpleQueue[Forked] = queue.SimpleQueue()
        self._alive: dict[int, Forked] = {}
        self._said: list[str] = []
        self._lock = threading.Lock()  # who asks is who is answered
        supervisor = Supervisor()
        folder = tempfile.TemporaryDirectory(prefix="mercury-forks-")
        atexit.register(folder.cleanup)
        atexit.register(supervisor.end)
        self._socket = str(Path(folder.name) / "asked")
        own = {**environment, SOCKET: self._socket}
        self._child = supervisor.start(command, own, told=self._hear, stdin=b"")

    def as_command(self) -> tuple[str, ...]:
        """What stands for a Python in commands: whoever starts it starts a fork."""
        return (sys.executable, "-S", str(FOLDER / "forked.py"), self._socket)

    def start(self, command: Sequence[str], env: Mapping[str, str], log: Path) -> Forked:
        """`command`: a script, or -c and code, and its arguments."""
        log.touch()
        script, *words = command
        asked = {"script": script, "words": words, "env": dict(env), "log": str(log)}
        assert self._child.stdin is not None
        with self._lock:
            self._child.stdin.write(json.dumps(asked).encode() + b"\n")
            try:
                return self._started.get(timeout=120)
            except queue.Empty:
                raise AssertionError(f"no process was started: {self._said}") from None

    def run(self, command: Sequence[str], env: Mapping[str, str]) -> CompletedProcess[str]:
        """To its end; all that it prints is in `stderr`."""
        with tempfile.NamedTemporaryFile() as log:
            process = self.start(command, env, Path(log.name))
            deadline = time.monotonic() + RUN_LIMIT_S
            while process.poll() is None:
                if time.monotonic() > deadline:
                    end([process])
                    raise AssertionError(f"not done: {log.read().decode(errors='replace')}")
                time.sleep(0.01)
            said = log.read().decode(errors="replace")
        assert process.code is not None
        return CompletedProcess(command, process.code, "", said)

    def _hear(self, line: str) -> None:
        try:
            told = json.loads(line)
        except ValueError:
            self._said.append(line)
            return
        if "started" in told:
            child = self._alive[told["started"]] = Forked(told["started"])
            self._started.put(child)
        else:
            self._alive.pop(told["ended"]).code = told["code"]


def end(processes: Iterable[Forked]) -> None:
    left = [process for process in processes if process.poll() is None]
    for process in left:
        process.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + GONE_WITHIN_S
    while any(process.poll() is None for process in left) and time.monotonic() < deadline:
        time.sleep(0.01)


_once = threading.Lock()


@functools.cache
def _forks(python: str, script: str) -> Forks:
    base = {k: v for k, v in os.environ.items() if not k.startswith(("DMLC_", "MERCURY_"))}
    path = f"{FOLDER.parent}:{FOLDER.parent / 'examples'}"
    environment = {**base, "OMP_NUM_THREADS": "1", "PYTHONPATH": path}
    return Forks([python, "-u", str(FOLDER / script)], environment)


def mxnet_forks() -> Forks:
    """Of workers that have MXNet."""
    with _once:
        return _forks(sys.executable, "mxnet_forks.py")


def core_forks() -> Forks:
    """Of servers and schedulers of ours."""
    with _once:
        return _forks(sys.executable, "core_forks.py")


def stock_forks(python: str) -> Forks:
    """Of nodes that have the stock MXNet of that environment."""
    with _once:
        return _forks(python, "stock_forks.py")
