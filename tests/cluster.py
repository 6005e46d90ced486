"""Starts a job of real processes on this machine and never leaves one behind.

The processes are told their part by DMLC_* variables alone, as on Kubernetes.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest

from pslite_ext.launch.supervise import Supervisor
from tests.forks import Forked, core_forks, end, mxnet_forks, stock_forks

ROOT = Path(__file__).resolve().parent.parent
# What Python and MXNet read when they start; but for this one.
BEFORE_IMPORTS, LATER = ("MXNET_", "OMP_", "PYTHON"), "MXNET_UPDATE_ON_KVSTORE"
FIRST_PORT, PORTS, PROCESSES = 12000, 2500, 8


def free_port() -> int:
    """A port that nobody uses and that no outgoing connection is given. Each process that runs
    tests has ports of its own, or two might be told the same one."""
    mine = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % PROCESSES
    while True:
        port = FIRST_PORT + PORTS * mine + secrets.randbelow(PORTS)
        with socket.socket() as sock, contextlib.suppress(OSError):
            sock.bind(("127.0.0.1", port))
            return port


def wait_gone(marker: str, timeout_s: float = 60) -> None:
    """Until no process has `marker` on its command line."""
    deadline = time.monotonic() + timeout_s
    while left := [path for path in Path("/proc").glob("[0-9]*/cmdline") if _holds(path, marker)]:
        assert time.monotonic() < deadline, f"left behind: {left}"
        time.sleep(0.05)


def _holds(path: Path, text: str) -> bool:
    try:
        return text.encode() in path.read_bytes()
    except OSError:  # it has just ended
        return False


def clean_environment(**changes: str) -> dict[str, str]:
    """Ours, but for what it says of a job; and `changes`."""
    base = {k: v for k, v in os.environ.items() if not k.startswith(("DMLC_", "MERCURY_"))}
    return {**base, **changes}


def mercury(*words: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """What the command of this tree comes to."""
    command = [sys.executable, "-m", "tracer", *map(str, words)]
    settings = {"cwd": ROOT, "env": clean_environment(), "timeout": 300, **options}
    return subprocess.run(command, capture_output=True, text=True, **settings)


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[None]:
    """Mounted at `folder`; without root, the test is skipped."""
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("a disk of its own needs root: what a full one does was not tried")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


class Started(Protocol):
    """A child of this process, or of one that starts some."""

    pid: int

    def poll(self) -> int | None: ...
    def send_signal(self, number: int) -> None: ...


@dataclass
class Process:
    role: str
    rank: int
    child: Any  # a Child, or what else is Started
    log: Path

    @property
    def name(self) -> str:
        return f"{self.role} {self.rank}"

    @property
    def output(self) -> str:
        return self.log.read_text(errors="replace")

    @property
    def code(self) -> int | None:
        code: int | None = self.child.poll()
        return code

    def listening(self) -> list[int]:
        """The ports that it listens on."""
        sockets = set()
        for fd in Path(f"/proc/{self.child.pid}/fd").iterdir():
            try:
                sockets.add(os.readlink(fd).removeprefix("socket:[").removesuffix("]"))
            except OSError:
                continue
        ports = []
        table = Path("/proc/net/tcp").read_text() + Path("/proc/net/tcp6").read_text()
        for line in table.splitlines():
            fields = line.split()
            if fields[3] == "0A" and fields[9] in sockets:
                ports.append(int(fields[1].rpartition(":")[2], 16))
        return ports

    def open_files(self) -> int:
        return len(os.listdir(f"/proc/{self.child.pid}/fd"))

    def kill(self, number: int = signal.SIGKILL) -> None:
        self.child.send_signal(number)


class Cluster:
    def __init__(
        self,
        processes: list[Process],
        port: int,
        start: Callable[[str, int, Path], Any] | None = None,
    ) -> None:
        """`start`: a process of that role and rank, with that log."""
        self.processes = processes
        self.port = port
        self._start = start

    def of(self, role: str) -> list[Process]:
        return [p for p in self.processes if p.role == role]

    @property
    def workers(self) -> list[Process]:
        return self.of("worker")

    @property
    def servers(self) -> list[Process]:
        return self.of("server")

    @property
    def scheduler(self) -> Process:
        return self.of("scheduler")[-1]

    def start_again(self, role: str, rank: int = 0) -> Process:
        """A scheduler, or a server, in the place of the one that is there, or was."""
        assert self._start is not None
        log = self.of(role)[0].log.with_name(f"{role}_again_{len(self.processes)}.log")
        process = Process(role, rank, self._start(role, rank, log), log)
        self.processes.append(process)
        return process

    def report(self) -> str:
        return "\n".join(f"--- {p.name}: {p.code}\n{p.output[-3000:]}" for p in self.processes)

    def wait_until(self, what: str, reached: Callable[[], bool], timeout_s: float = 60) -> None:
        deadline = time.monotonic() + timeout_s
        while not reached():
            if time.monotonic() > deadline:
                raise AssertionError(f"{what}: not within {timeout_s} s\n{self.report()}")
            time.sleep(0.05)

    def wait(self, timeout_s: float = 120) -> None:
        self.wait_until(
            "all ended", lambda: all(p.code is not None for p in self.processes), timeout_s
        )

    def wait_output(self, text: str, timeout_s: float = 60) -> None:
        """Until every worker has printed `text`."""
        self.wait_until(text, lambda: all(text in w.output for w in self.workers), timeout_s)

    def check(self) -> None:
        """Everybody ended well."""
        self.wait()
        assert [p.code for p in self.processes] == [0] * len(self.processes), self.report()


def imports_mxnet(command: Sequence[str]) -> bool:
    text = command[1] if command[0] == "-c" else Path(command[0]).read_text()
    return re.search(r"^(from|import) mxnet\b", text, re.MULTILINE) is not None


@contextmanager
def cluster(
    command: Sequence[str],
    workers: int = 2,
    servers: int = 2,
    van: str | None = "zmq",
    python: str = sys.executable,
    env: dict[str, str] | None = None,
    token: str | None = None,
    start_worker: Callable[[dict[str, str], Path], Started] | None = None,
    replicas: int = 0,
    forked: bool = True,
    at: Callable[[str, int], str] | None = None,
) -> Iterator[Cluster]:
    """`command`: a script and its arguments, or -c and code; run in every role.

    Workers with MXNet are forked from a process that has it, unless a test is about how processes
    start; without a van, all nodes are, of `python`'s stock MXNet. `start_worker` starts workers in
    another way, with an environment and a log. `at`: by role and rank, the address of this machine
    that stands for the process's host.
    """
    port = free_port()
    base = clean_environment(
        DMLC_PS_ROOT_URI="127.0.0.1",
        DMLC_PS_ROOT_PORT=str(port),
        DMLC_NUM_WORKER=str(workers),
        DMLC_NUM_SERVER=str(servers),
        DMLC_NUM_REPLICA=str(replicas),
        DMLC_NODE_HOST="127.0.0.1",
        OMP_NUM_THREADS="1",
        PYTHONUNBUFFERED="1",
    )
    if van is not None:
        base.update(DMLC_PS_VAN_TYPE=van, MERCURY_JOB_TOKEN=token or secrets.token_hex(16))
    base.update(env or {})
    roles = [("scheduler", 0)]
    roles += [("server", i) for i in range(servers)] + [("worker", i) for i in range(workers)]
    roles += [("replica", i) for i in range(replicas)]
    forked = forked and imports_mxnet(command)
    forked = forked and not any(n.startswith(BEFORE_IMPORTS) and n != LATER for n in env or {})
    processes: list[Process] = []
    supervisor = Supervisor()

    def environment_of(role: str, rank: int) -> dict[str, str]:
        own = {**base, "DMLC_ROLE": role, "DMLC_TASK_ID": str(rank)}
        return own if at is None else {**own, "DMLC_NODE_HOST": at(role, rank)}

    with tempfile.TemporaryDirectory() as folder:
        try:
            for role, rank in roles:
                log = Path(folder) / f"{role}_{rank}.log"
                own = environment_of(role, rank)
                child: Started
                if role == "worker" and start_worker is not None:
                    child = start_worker(own, log)
                elif forked and van is None:
                    child = stock_forks(python).start(command, own, log)
                elif forked:
                    forks = mxnet_forks() if role == "worker" else core_forks()
                    child = forks.start(command, own, log)
                else:
                    child = supervisor.start([python, *command], own, log=log)
                processes.append(Process(role, rank, child, log))

            def start(role: str, rank: int, log: Path) -> Any:
                own = environment_of(role, rank)
                return supervisor.start([python, *command], own, log=log)

            yield Cluster(processes, port, start)
        finally:
            end(p.child for p in processes if isinstance(p.child, Forked))
            supervisor.end()


TRAINING = [str(ROOT / "tests" / "faults" / "training.py")]


@contextmanager
def job_that_trains_on(
    folder: Path, van: str = "zmq", env: dict[str, str] | None = None, forked: bool = True
) -> Iterator[Cluster]:
    """Looping when the body begins; after it, it still trains, and ends well."""
    stop = folder / "stop"
    env = {**(env or {}), "STOP_FILE": str(stop)}
    with cluster(TRAINING, van=van, env=env, forked=forked) as job:
        job.wait_output("looping")
        yield job
        stop.touch()
        job.check()
        assert all("trained" in w.output for w in job.workers), job.report()
