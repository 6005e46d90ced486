"""Tells on stderr how far long work has come: a line that is rewritten on a terminal, nothing in
scripts unless it takes long."""

from __future__ import annotations

import sys
import time

FIRST_AFTER_S = 1.0
TERMINAL_EVERY_S = 0.2
SCRIPT_EVERY_S = 10.0


class Progress:
    """Counts work that is done; `total` in the same unit."""

    def __init__(self, what: str, total: int, quiet: bool = False) -> None:
        self._what = what
        self._total = max(total, 1)
        self._done = 0
        self._shown = False
        self._quiet = quiet
        self._terminal = sys.stderr.isatty()
        self._next = time.monotonic() + FIRST_AFTER_S

    def reached(self, done: int) -> None:
        self._done = done
        now = time.monotonic()
        if self._quiet or now < self._next:
            return
        self._next = now + (TERMINAL_EVERY_S if self._terminal else SCRIPT_EVERY_S)
        self._shown = True
        share = min(100 * self._done // self._total, 100)
        end = "\r" if self._terminal else "\n"
        print(f"{self._what}: {share:3d}%", end=end, file=sys.stderr, flush=True)

    def reached_of(self, done: int, total: int) -> None:
        """For work whose extent shows only once it has begun."""
        self._total = max(total, 1)
        self.reached(done)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown and self._terminal:
            print(" " * (len(self._what) + 8), end="\r", file=sys.stderr, flush=True)
