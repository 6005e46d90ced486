"""Processes that are started together and end together.

Every child leads a session of its own, so that ending its group ends what it started, too, and
nothing else. If this process dies without having had the chance, the kernel kills its children, and
a guard what they started.
"""

from __future__ import annotations

import array
import ctypes
import fcntl
import os
import queue
import select
import signal
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from pslite_ext.launch.guard import GUARD
from pslite_ext.launch.output import LineCutter, Log

KILLED_WITHIN_S = 5.0
# After a process's end, for what it left behind to close its output, too.
CLOSED_WITHIN_S = 1.0
# More than a pipe holds: who still writes after that is not the process that has ended.
_LEFT_BYTES_MAX = 1 << 20
_LOOK_S = 0.02
_libc = ctypes.CDLL(None)


class Child(subprocess.Popen[bytes]):
    """A process with what it started: signals, those of terminate() and kill() too, go to all."""

    holds_output = False  # it has ended, but something that it left behind may still print
    told_bytes = 0  # what was written to its standard input

    def send_signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def tell(self, line: str) -> None:
        """On its standard input; nobody may listen any more."""
        if self.stdin is not None:
            with suppress(OSError, ValueError):
                os.set_blocking(self.stdin.fileno(), False)
                self.told_bytes += os.write(self.stdin.fileno(), line.encode() + b"\n")

    def has_read(self) -> bool:
        """Whether it has read any of what it was told, or nothing is known of that."""
        if self.stdin is None or self.stdin.closed:
            return True
        unread = array.array("i", [0])
        fcntl.ioctl(self.stdin.fileno(), termios.FIONREAD, unread)
        return unread[0] < self.told_bytes

    def is_left(self) -> bool:
        """Whether anything of the group is. Where we are a container's first process, what our
        children leave behind becomes ours: it is there until we hear of its end."""
        if self.poll() is not None:
            with suppress(ChildProcessError):
                while os.waitpid(-self.pid, os.WNOHANG)[0]:
                    pass
        try:
            os.killpg(self.pid, 0)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def forget_if_gone(self) -> None:
        """Once it has ended, its number may become another's."""
        if not self.is_left():
            GUARD.forget(self.pid)


class Supervisor:
    """Starts children, hears them, and ends them. A thread for each child; any thread may call."""

    def __init__(self) -> None:
        self.children: list[Child] = []  # started, and not ended by `end`
        self.ended: queue.SimpleQueue[Child] = queue.SimpleQueue()  # and everything is told

    def start(
        self,
        command: Sequence[str],
        env: Mapping[str, str] | None = None,
        *,
        log: Path | None = None,
        told: Callable[[str], None] | None = None,
        keeps_up: Callable[[], bool] = lambda: True,
        stdin: bytes | None = None,
    ) -> Child:
        """What it prints goes to `log` and, line by line, to `told`; without them, where ours goes.

        While `keeps_up` says no, which may take a moment, no more is told: whoever prints waits.
        `stdin` is written, then kept open for `tell` until `end`.
        """
        with ExitStack() as files, _uninterrupted():
            out: Any = subprocess.PIPE if told else None
            if log and not told:
                out = files.enter_context(log.open("wb"))
            with ExitStack() as unless_started:
                has_ended, says_ended = os.pipe()
                unless_started.callback(os.close, has_ended)
                unless_started.callback(os.close, says_ended)
                child = Child(
                    command,
                    bufsize=0,
                    env=None if env is None else dict(env),
                    stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
                    stdout=out,
                    stderr=subprocess.STDOUT if out else None,
                    start_new_session=True,
                    preexec_fn=_prepare,
                )
                unless_started.pop_all()
            self.children.append(child)
            GUARD.watch(child.pid)
            for does in (
                partial(self._await, child, says_ended),
                partial(self._hear, child, has_ended, log, told, keeps_up),
            ):
                threading.Thread(target=does, daemon=True).start()
        if child.stdin is not None and stdin:
            with suppress(BrokenPipeError):  # it has ended already
                child.stdin.write(stdin)
                child.told_bytes = len(stdin)
        return child

    @staticmethod
    def _await(child: Child, says_ended: int) -> None:
        child.wait()
        os.close(says_ended)

    def _hear(
        self,
        child: Child,
        has_ended: int,
        log: Path | None,
        told: Callable[[str], None] | None,
        keeps_up: Callable[[], bool],
    ) -> None:
        output = self._output(child, has_ended)
        try:
            if told is not None:
                self._pass_on(self._slowly(child, output, keeps_up), log, told)
        finally:
            # Even if nobody can be told any more: it must not stand still, nor end unheard.
            for _ in output:
                pass
            child.wait()
            child.forget_if_gone()
            if not child.holds_output:
                self.ended.put(child)

    @staticmethod
    def _slowly(
        child: Child, output: Iterator[bytes], keeps_up: Callable[[], bool]
    ) -> Iterator[bytes]:
        """Whoever prints waits for who is told; but the end of a child is not waited for."""
        for some in output:
            yield some
            while (child.returncode is None or child.holds_output) and not keeps_up():
                pass

    @staticmethod
    def _pass_on(output: Iterator[bytes], log: Path | None, told: Callable[[str], None]) -> None:
        lines = LineCutter()
        with Log(log) as kept:
            for line in kept.write(b""):  # the file is there from the start
                told(line)
            for some in output:
                for line in (*kept.write(some), *lines.take(some)):
                    told(line)
            for line in lines.rest():
                told(line)

    def _output(self, child: Child, has_ended: int) -> Iterator[bytes]:
        """Until nobody can print any more. A process that it leaves behind may keep its output
        open forever: the child's own end is reported once all that it printed is told.
        """
        left_bytes, deadline = 0, 0.0  # once it has ended
        comes = select.poll()
        comes.register(has_ended, select.POLLIN)
        output = -1
        if child.stdout is not None:
            output = child.stdout.fileno()
            comes.register(output, select.POLLIN)
        while output >= 0:
            awaits = bool(deadline) and not child.holds_output
            timeout = max(0.0, deadline - time.monotonic()) if awaits else None
            ready = {fd for fd, _ in comes.poll(None if timeout is None else timeout * 1000)}
            if has_ended in ready:
                comes.unregister(has_ended)
                deadline = time.monotonic() + CLOSED_WITHIN_S
            if output in ready:
                some = os.read(output, 1 << 16)
                if not some:
                    break
                yield some
                left_bytes += len(some) if deadline else 0
            silent = output not in ready and time.monotonic() >= deadline
            if awaits and (silent or left_bytes > _LEFT_BYTES_MAX):
                child.holds_output = True
                self.ended.put(child)
        if not deadline:
            os.read(has_ended, 1)  # it has closed its output, and goes on
        os.close(has_ended)

    def end(self, which: Sequence[Child] | None = None, ask_s: float = 0.0) -> None:
        """Ends the groups of `which`, or of all: asked first, killed if left after `ask_s`."""
        ending = list(self.children if which is None else which)
        for number, patience_s in ((signal.SIGTERM, ask_s), (signal.SIGKILL, KILLED_WITHIN_S)):
            deadline = time.monotonic() + patience_s
            for child in ending if patience_s else ():
                if child.stdin is not None:
                    child.stdin.close()  # the remote side ends what it started
                child.send_signal(number)
            while any(child.is_left() for child in ending) and time.monotonic() < deadline:
                time.sleep(_LOOK_S)
        for child in ending:
            with suppress(subprocess.TimeoutExpired):  # where another thread has still to note it
                child.wait(max(0.1, deadline - time.monotonic()))
            child.forget_if_gone()
            with suppress(ValueError):  # another thread was faster
                self.children.remove(child)


def _prepare() -> None:
    """In the child: it dies with us, and Ctrl-C works, which a shell's background jobs ignore."""
    _libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Signals wait: between a child's start and its being known they would leave the child."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    missed: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(n, lambda number, _frame: missed.append(number)) for n in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before):
            signal.signal(number, handler)
        if missed:
            os.kill(os.getpid(), missed[0])
