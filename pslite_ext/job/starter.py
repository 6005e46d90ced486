"""Whoever has started this scheduler or server: what it tells us, and what we tell it."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Sequence

from pslite_ext.errors import PsliteError
from pslite_ext.launch import scheduler_words


class Starter:
    """`on_end` hears, on a thread of its own, how others of the job have ended; `on_left`, that
    whoever started us has gone. `there`: there is somebody."""

    def __init__(
        self,
        there: bool,
        on_end: Callable[[scheduler_words.Ending], None],
        on_left: Callable[[], None] = lambda: None,
    ) -> None:
        self._on_end, self._on_left = on_end, on_left
        self._reads = False
        if there:
            threading.Thread(target=self._hear, daemon=True, name="mercury-launcher").start()

    def _hear(self) -> None:
        heard = b""
        while some := os.read(0, 4096):
            *lines, heard = (heard + some).split(b"\n")
            for line in lines:
                self._reads = self._reads or scheduler_words.greets(line)
                ended = scheduler_words.heard(line)
                if ended is not None:
                    self._on_end(ended)
        self._on_left()

    def say_without(self, names: Sequence[str]) -> None:
        """Who may still be there, though the job is over."""
        if self._reads and names:
            print(scheduler_words.without(names), file=sys.stderr, flush=True)

    def say(self, error: PsliteError) -> None:
        """Who the job has failed of."""
        if self._reads and (words := scheduler_words.failure(error)):
            print(words, file=sys.stderr, flush=True)
