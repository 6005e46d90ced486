"""What is shown on a stream whose reader takes his time, or takes nothing any more.

A thread of its own writes, past Python's buffer, whose lock nobody then holds when Python ends. Who
has something to say never waits here; who reads more for it may ask whether the reader keeps up.

Thread-safety: any thread may call, and a signal's handler.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TextIO

WAITING_MOST = 1000  # lines
# At the end: since the reader has last taken something.
PATIENCE_S = 5.0
_LOOK_S = 0.1
_AT_ONCE = select.PIPE_BUF  # a pipe of which `poll` says that it can be written to takes so much


class Display:
    """`on_end` is told why nothing more is shown, such as "Broken pipe"."""

    def __init__(self, stream: TextIO, on_end: Callable[[str], None] = lambda why: None) -> None:
        stream.flush()
        self._fd = os.dup(stream.fileno())  # whoever closes the stream: it is not another file's
        self._encoding = stream.encoding or "utf-8"
        self._on_end = on_end
        self._changed = threading.Condition()  # guards what follows
        self._lines: deque[bytes] = deque()  # the first of them is being written
        self._taken_at = 0.0
        self._over = False
        threading.Thread(target=self._write, daemon=True, name="mercury-display").start()

    def say(self, text: str) -> None:
        with self._changed:
            if not self._over:
                if not self._lines:
                    self._taken_at = time.monotonic()
                self._lines.append(text.encode(self._encoding, "replace") + b"\n")
                self._changed.notify_all()

    def keeps_up(self, within_s: float = _LOOK_S) -> bool:
        """Whether not too much waits to be written."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self._lines) <= WAITING_MOST, within_s)

    def is_done(self, within_s: float) -> bool:
        """Whether nothing waits."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._lines, within_s)

    def hush(self) -> None:
        """Nothing is shown from here on. The lock may be held by whom a signal has interrupted."""
        self._over = True

    def close(self) -> None:
        """Once all is written, or when the reader takes nothing."""
        while not self.is_done(_LOOK_S):
            if self._taken_at < time.monotonic() - PATIENCE_S:
                self._end("nobody reads it")
                return
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def _write(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._lines or self._over)
                if self._over:
                    break
                line = self._lines[0]
            why_not = self._written(line)
            with self._changed:
                if self._lines:  # else it was ended
                    self._lines.popleft()
                self._taken_at = time.monotonic()
                self._changed.notify_all()
            if why_not:
                self._end(why_not)
        with self._changed:
            self._lines.clear()
            self._changed.notify_all()
        os.close(self._fd)

    def _written(self, line: bytes) -> str:
        takes = select.poll()
        takes.register(self._fd, select.POLLOUT)
        try:
            while line and not self._over:
                if takes.poll(_LOOK_S * 1000):
                    line = line[os.write(self._fd, line[:_AT_ONCE]) :]
                    self._taken_at = time.monotonic()
        except OSError as error:
            return error.strerror or str(error)
        return ""

    def _end(self, why: str) -> None:
        with self._changed:
            self._lines.clear()
            told, self._over = self._over, True
            self._changed.notify_all()
        if not told:
            self._on_end(why)
