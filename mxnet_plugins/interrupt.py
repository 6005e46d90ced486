"""Ctrl-C while MXNet waits for the network.

Python cannot raise KeyboardInterrupt while the main thread is inside MXNet, and if what MXNet
waits for never comes, it never returns. So a thread hears of the signal, gives Python a moment,
and then leaves the job: what is pending fails, MXNet returns, and Python raises its
KeyboardInterrupt.
"""

from __future__ import annotations

import os
import signal
import threading

from pslite_ext import _core

_GRACE_S = 1.0
_answered = threading.Event()


def watch() -> None:
    """Does nothing where signals are not Python's own to handle."""
    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return
    reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    earlier = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    if earlier != -1:
        signal.set_wakeup_fd(earlier)
        return
    os.set_blocking(reading, True)

    def on_interrupt(number: int, frame: object) -> None:
        _answered.set()
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, on_interrupt)
    threading.Thread(target=_listen, args=(reading,), daemon=True, name="mercury-interrupt").start()


def _listen(reading: int) -> None:
    while True:
        numbers = os.read(reading, 64)
        if signal.SIGINT in numbers and not _answered.wait(_GRACE_S):
            _core.finish("it was interrupted")
