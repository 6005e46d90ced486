"""Processes that are started together and end together.

Every child leads a session of its own, so that ending its group ends what it started, too, and
nothing else; the kernel kills it if this process dies without having had the chance.
"""

from __future__ import annotations

import ctypes
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pslite_ext.launch.tasks import LaunchError, Task

TAIL_LINES = 20
TERM_S = 5.0  # between asking a process to end and killing it
COLOURS = {"worker": 32, "server": 34, "scheduler": 35}
_libc = ctypes.CDLL(None)


def _die_with_parent() -> None:
    _libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


@dataclass
class Child:
    task: Task
    process: subprocess.Popen[bytes]
    reader: threading.Thread | None = None
    tail: deque[str] = field(default_factory=lambda: deque(maxlen=TAIL_LINES))


class Supervisor:
    def __init__(self, log_dir: Path, grace_s: float) -> None:
        self._log_dir = log_dir
        self._grace_s = grace_s  # for the others to notice a failure themselves
        self._children: list[Child] = []
        self._ended: queue.SimpleQueue[Child] = queue.SimpleQueue()
        self._print_lock = threading.Lock()
        self._colour = sys.stdout.isatty()

    def start(self, tasks: Sequence[Task]) -> None:
        self._log_dir.mkdir(parents=True, exist_ok=True)
        for task in tasks:
            try:
                process = subprocess.Popen(
                    task.command,
                    env=dict(task.env) or None,
                    stdin=subprocess.PIPE if task.stdin else subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    preexec_fn=_die_with_parent,
                )
            except OSError as error:
                raise LaunchError(f"cannot run {task.command[0]}: {error.strerror}") from None
            child = Child(task, process)
            self._children.append(child)
            if task.stdin:
                assert process.stdin is not None
                process.stdin.write(task.stdin)
                process.stdin.flush()
            child.reader = threading.Thread(target=self._read, args=(child,), daemon=True)
            child.reader.start()

    def _read(self, child: Child) -> None:
        """Copies a child's output to its log and, line by line with its name, to ours."""
        name = child.task.name
        prefix = f"[{name}] "
        if self._colour:
            prefix = f"\033[{COLOURS[child.task.role]}m{prefix}\033[0m"
        stream = child.process.stdout
        assert stream is not None
        with (self._log_dir / f"{name.replace(' ', '_')}.log").open("wb", buffering=0) as log:
            for line in stream:
                log.write(line)
                text = line.decode(errors="replace").rstrip("\n")
                child.tail.append(text)
                with self._print_lock:
                    print(prefix + text, flush=True)
        child.process.wait()
        self._ended.put(child)

    def wait(self) -> int:
        """Until all have ended; the exit code of the first that failed, 0 if none did."""
        running = len(self._children)
        first: Child | None = None
        deadline: float | None = None
        while running:
            timeout = None if deadline is None else max(0.0, deadline - time.monotonic())
            try:
                child = self._ended.get(timeout=timeout)
            except queue.Empty:
                self.end_all()
                deadline = None
                continue
            running -= 1
            if child.process.returncode != 0 and first is None:
                first = child
                deadline = time.monotonic() + self._grace_s
        if first is None:
            return 0
        code = first.process.returncode
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        lines = [f"mercury launch: {first.task.name} {how} first; its last lines:"]
        lines += [f"    {line}" for line in first.tail] or ["    (it printed nothing)"]
        lines += [f"mercury launch: all logs are in {self._log_dir}"]
        print("\n".join(lines), file=sys.stderr, flush=True)
        return code if code > 0 else 128 - code

    def end_all(self) -> None:
        """Ends every group that was started: politely, then not."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            for child in self._children:
                if child.process.stdin is not None and not child.process.stdin.closed:
                    child.process.stdin.close()  # the remote side ends what it started
                try:
                    os.killpg(child.process.pid, number)
                except ProcessLookupError:
                    continue
            deadline = time.monotonic() + TERM_S
            while time.monotonic() < deadline and any(self._alive(c) for c in self._children):
                time.sleep(0.05)

    @staticmethod
    def _alive(child: Child) -> bool:
        """Whether anything is left of the child's group, grandchildren included."""
        child.process.poll()
        try:
            os.killpg(child.process.pid, 0)
        except (ProcessLookupError, PermissionError):
            return False
        return True
