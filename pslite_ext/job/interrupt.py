"""Ctrl-C while an engine such as MXNet's waits for the network.

Python cannot raise KeyboardInterrupt while the main thread is inside the engine, and if what that
waits for never comes, it never returns. So a thread hears of the signal, gives Python a moment, and
then leaves the job: what is pending fails, the engine returns, and Python raises its
KeyboardInterrupt. A script that has a handler of its own decides for itself. Waits of our own core
need none of this.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
import time

from pslite_ext import _core

_GRACE_S = 1.0
_answers = 0  # how often Python has raised KeyboardInterrupt
_hears = -1  # the pipe that the kernel's signals are written to; what is in it awaits an answer


def watch() -> None:
    """Does nothing where signals are not Python's own to handle."""
    global _hears
    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return
    reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    earlier = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    if earlier != -1:
        signal.set_wakeup_fd(earlier)
        os.close(reading)
        os.close(writing)
        return
    _hears = reading
    signal.signal(signal.SIGINT, _on_interrupt)
    threading.Thread(target=_listen, daemon=True, name="mercury-interrupt").start()
    os.register_at_fork(after_in_child=_forget)


def _forget() -> None:
    """In a forked child: its signals are none of this job's, and it shares the pipe."""
    signal.set_wakeup_fd(-1)
    if signal.getsignal(signal.SIGINT) is _on_interrupt:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _heard() -> bytes:
    """Takes what has come since."""
    with contextlib.suppress(BlockingIOError):
        return os.read(_hears, 4096)
    return b""


def _on_interrupt(_number: int, _frame: object) -> None:
    global _answers
    _answers += 1
    _heard()  # one answer for all that came before it
    raise KeyboardInterrupt


def _listen() -> None:
    comes = select.poll()
    comes.register(_hears, select.POLLIN)
    while True:
        comes.poll()
        answers = _answers
        time.sleep(_GRACE_S)
        if answers != _answers:
            continue  # what is there now came later: it has its own moment
        ours = signal.getsignal(signal.SIGINT) is _on_interrupt
        if signal.SIGINT in _heard() and ours:
            _core.finish("it was interrupted")
