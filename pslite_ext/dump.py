"""What this process is doing, for who wants to know why a job hangs: on SIGUSR1, and when a stall
ends the job.

faulthandler tells where every thread is, even of a process whose main thread is inside MXNet and
hears no signal: from its signal handler it writes to a pipe, where a thread of ours waits. That
thread adds what the core waits for, and puts all of it into the trace directory, or else on
standard error, which launchers keep in their logs.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import fcntl
import os
import select
import signal
import sys
import threading
import time
from pathlib import Path

from pslite_ext import _core

THREAD = b"mercury-dump"  # by which `mercury dump` knows a process that answers
SILENCE_S = 0.2  # after which a signal's stacks are all there
_PIPE_BYTES = 1 << 20  # so many fit into it before somebody reads
_F_SETPIPE_SZ, _PR_SET_NAME = 1031, 15
_watches = False


def watch(role: str, directory: str) -> None:
    """Before the process joins. A script that handles SIGUSR1 itself keeps it."""
    global _watches
    if _watches:
        return
    _watches = True
    reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    with contextlib.suppress(OSError):  # otherwise stacks that do not fit are cut off
        fcntl.fcntl(writing, _F_SETPIPE_SZ, _PIPE_BYTES)
    by_signal = signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL
    if by_signal:
        faulthandler.register(signal.SIGUSR1, file=writing, all_threads=True)
        # In a forked child, the pipe is its parent's.
        os.register_at_fork(after_in_child=lambda: faulthandler.unregister(signal.SIGUSR1))
    _core.dump_to(writing)
    arguments = (role, directory, reading, by_signal)
    threading.Thread(target=_listen, args=arguments, daemon=True, name="mercury-dump").start()


def _listen(role: str, directory: str, reading: int, by_signal: bool) -> None:
    if by_signal:
        ctypes.CDLL(None).prctl(_PR_SET_NAME, THREAD, 0, 0, 0)
    comes = select.poll()
    comes.register(reading, select.POLLIN)
    while True:
        comes.poll()
        heard = b""
        while comes.poll(0 if heard[:1] == b"\0" else SILENCE_S * 1000):
            heard += os.read(reading, _PIPE_BYTES)
        why = "it was asked to"
        if heard[:1] == b"\0":  # the core: nobody's handler has written
            why, heard = "of a stall", _stacks()
        waits = _core.waiting()
        name = role if role == "scheduler" else f"{role} {_core.rank()}"
        if not waits:
            name, waits = role, "its job, which has not begun\n"
        _tell(name, directory, _page(name, why, waits, heard.decode(errors="replace")))
        _core.dumped()


def _stacks() -> bytes:
    with open(os.memfd_create("mercury-stacks"), "w+b") as file:
        faulthandler.dump_traceback(file, all_threads=True)
        file.seek(0)
        return file.read()


def _page(name: str, why: str, waits: str, stacks: str) -> str:
    when = time.strftime("%Y-%m-%d %H:%M:%S %z")
    head = f"=== {name} (process {os.getpid()}) at {when}: dumped because {why}"
    return f"{head}\n--- waits for\n{waits}--- stacks\n{stacks.rstrip()}\n=== end of {name}\n"


def _tell(name: str, directory: str, page: str) -> None:
    if directory:
        path = Path(directory) / f"dump_{name.replace(' ', '_')}.txt"
        try:
            with path.open("a") as file:
                file.write(page)
        except OSError as error:
            page = f"mercury: {path}: {error.strerror}\n{page}"
        else:
            page = f"mercury: what {name} is doing is in {path}\n"
    sys.stderr.write(page)
    sys.stderr.flush()
