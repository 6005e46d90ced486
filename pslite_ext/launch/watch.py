"""A launched job's output under its processes' names, and what it came to."""

from __future__ import annotations

import queue
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from pslite_ext.launch.supervise import Child, Supervisor
from pslite_ext.launch.tasks import LaunchError, Task

TAIL_LINES = 20
TERM_S = 5.0  # between asking a process to end and killing it
COLOURS = {"worker": 32, "server": 34, "scheduler": 35}


class Watch:
    def __init__(self, log_dir: Path, grace_s: float) -> None:
        self._log_dir = log_dir
        self._grace_s = grace_s  # for the others to notice a failure themselves
        self._supervisor = Supervisor()
        self._tasks: dict[Child, tuple[Task, deque[str]]] = {}  # with its last lines
        self._print_lock = threading.Lock()
        self._colour = sys.stdout.isatty()

    def start(self, tasks: Sequence[Task]) -> None:
        self._log_dir.mkdir(parents=True, exist_ok=True)
        for task in tasks:
            tail: deque[str] = deque(maxlen=TAIL_LINES)
            log = self._log_dir / f"{task.name.replace(' ', '_')}.log"
            prefix = f"[{task.name}] "
            if self._colour:
                prefix = f"\033[{COLOURS[task.role]}m{prefix}\033[0m"
            told = partial(self._print, prefix, tail)
            try:
                child = self._supervisor.start(
                    task.command, task.env or None, log=log, told=told, stdin=task.stdin
                )
            except OSError as error:
                raise LaunchError(f"cannot run {task.command[0]}: {error.strerror}") from None
            self._tasks[child] = (task, tail)

    def _print(self, prefix: str, tail: deque[str], line: str) -> None:
        tail.append(line)
        with self._print_lock:
            print(prefix + line, flush=True)

    def wait(self) -> int:
        """Until all have ended; the exit code of the first that failed, 0 if none did."""
        first: Child | None = None
        deadline: float | None = None
        running = len(self._tasks)
        while running:
            timeout = None if deadline is None else max(0.0, deadline - time.monotonic())
            try:
                child = self._supervisor.ended.get(timeout=timeout)
            except queue.Empty:
                self.end_all()
                deadline = None
                continue
            running -= 1
            if child.returncode != 0 and first is None:
                first = child
                deadline = time.monotonic() + self._grace_s
        if first is None:
            return 0
        code = first.returncode
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        task, tail = self._tasks[first]
        lines = [f"mercury launch: {task.name} {how} first; its last lines:"]
        lines += [f"    {line}" for line in tail] or ["    (it printed nothing)"]
        lines += [f"mercury launch: all logs are in {self._log_dir}"]
        print("\n".join(lines), file=sys.stderr, flush=True)
        return code if code > 0 else 128 - code

    def end_all(self) -> None:
        self._supervisor.end(ask_s=TERM_S)
