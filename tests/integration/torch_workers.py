"""Jobs whose workers have PyTorch, in an environment of its own: this project's has none.

The workers are forked from one process that has imported it; a test that is about how processes
start starts its own.
"""

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
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import pytest

from pslite_ext.launch.supervise import Supervisor
from scripts.lab.systems.peers import PeerMissing, peer_python
from tests.cluster import ROOT, Cluster, Process, clean_environment, cluster, free_port

EXAMPLES = ROOT / "examples"
FOLDER = Path(__file__).parent
SERVE = ["-c", "import sys; from mxnet_plugins import server; sys.exit(server.main())"]
GONE_WITHIN_S = 10.0


@functools.cache
def torch_python() -> Path:
    """The Python of an environment with PyTorch; without one, the test is skipped."""
    if chosen := os.environ.get("MERCURY_TORCH_PYTHON"):
        return Path(chosen)
    try:
        return Path(peer_python("torch-ddp"))
    except PeerMissing as error:
        pytest.skip(f"no PyTorch, so nothing of pslite_ext.torch was tried: {error}")


class Forked:
    """A worker, as far as tests handle it: a process that is not this one's child."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.code: int | None = None

    def poll(self) -> int | None:
        return self.code

    def send_signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, number)


class Forks:
    """The process that forks; it lives as long as this one."""

    def __init__(self) -> None:
        self._started: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._alive: dict[int, Forked] = {}
        supervisor = Supervisor()
        atexit.register(supervisor.end)
        # For all workers: what examples/ import is there, too.
        path = f"{ROOT}:{EXAMPLES}:{Path(sys.prefix) / 'digits'}"
        environment = clean_environment(OMP_NUM_THREADS="1", PYTHONPATH=path)
        command = [str(torch_python()), "-u", "-W", "ignore", str(FOLDER / "torch_forks.py")]
        self._said: list[str] = []
        self._child = supervisor.start(command, environment, told=self._hear, stdin=b"")

    def start(self, script: str, words: tuple[str, ...], env: dict[str, str], log: Path) -> Forked:
        log.touch()
        path = FOLDER / script
        asked = {"script": str(path), "words": words, "env": env, "log": str(log)}
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps(asked).encode() + b"\n")
        self._child.stdin.flush()
        try:
            return self._alive[self._started.get(timeout=120)]
        except queue.Empty:
            raise AssertionError(f"no worker was started: {self._said}") from None

    def _hear(self, line: str) -> None:
        try:
            told = json.loads(line)
        except ValueError:
            self._said.append(line)
            return
        if "started" in told:
            self._alive[told["started"]] = Forked(told["started"])
            self._started.put(told["started"])
        else:
            self._alive.pop(told["ended"]).code = told["code"]


_lock = threading.Lock()
_forks: Forks | None = None


def forks() -> Forks:
    global _forks
    with _lock:
        if _forks is None:
            _forks = Forks()
        return _forks


def _end(workers: list[Forked]) -> None:
    for worker in workers:
        if worker.poll() is None:
            worker.send_signal(signal.SIGKILL)


@contextmanager
def _cluster(
    script: str, words: tuple[str, ...], workers: int, servers: int, van: str, env: dict[str, str]
) -> Iterator[Cluster]:
    forked: list[Forked] = []

    def start(own: dict[str, str], log: Path) -> Forked:
        forked.append(forks().start(script, words, own, log))
        return forked[-1]

    try:
        with cluster(SERVE, workers, servers, van, env=env, start_worker=start) as job:
            yield job
    finally:
        _end(forked)


def torch_job(
    script: str,
    *words: str,
    workers: int = 2,
    servers: int = 1,
    van: str = "mercury",
    **env: str,
) -> AbstractContextManager[Cluster]:
    """Workers run the script of this folder."""
    torch_python()
    return _cluster(script, words, workers, servers, van, env)


@contextmanager
def ranks(script: str, *words: str, workers: int = 2, **env: str) -> Iterator[Cluster]:
    """Workers with torchrun's variables alone."""
    torch_python()
    port = free_port()
    base = clean_environment(
        WORLD_SIZE=str(workers),
        LOCAL_WORLD_SIZE=str(workers),
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
        **{"PYTHONPATH": str(ROOT), **env},
    )
    processes: list[Process] = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            for rank in range(workers):
                log = Path(folder) / f"worker_{rank}.log"
                own = {**base, "RANK": str(rank), "LOCAL_RANK": str(rank)}
                child = forks().start(script, words, own, log)
                processes.append(Process("worker", rank, child, log))
            yield Cluster(processes, port)
        finally:
            _end([p.child for p in processes if isinstance(p.child, Forked)])
