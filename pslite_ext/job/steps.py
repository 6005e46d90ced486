"""How long a worker's training steps take, as live figures count them.

A step ends when a key is pushed that was pushed in it before. Thread-safety: one thread pushes, any
may read.
"""

from __future__ import annotations

import bisect
import threading
import time
from collections.abc import Hashable

# Upper bounds of the histogram, in seconds: 1 ms to 100 s.
_DIGITS = (1.0, 2.5, 5.0)
BOUNDS_S = (*(digits * 10.0**power for power in range(-3, 2) for digits in _DIGITS), 100.0)


class StepTimes:
    def __init__(self) -> None:
        self._pushed: set[Hashable] = set()
        self._began: float | None = None
        self._lock = threading.Lock()  # guards what follows
        self._counts = [0] * (len(BOUNDS_S) + 1)  # of each interval; the last is open
        self._seconds = 0.0

    def pushed(self, key: Hashable, now_s: float | None = None) -> None:
        if key not in self._pushed:
            self._pushed.add(key)
            if self._began is not None:
                return
        now_s = time.monotonic() if now_s is None else now_s
        if self._began is not None:
            self._took(now_s - self._began)
            self._pushed = {key}
        self._began = now_s

    def _took(self, seconds: float) -> None:
        with self._lock:
            self._counts[bisect.bisect_left(BOUNDS_S, seconds)] += 1
            self._seconds += seconds

    def histogram(self) -> tuple[list[int], float]:
        """How many took no longer than each of BOUNDS_S, and how many in all; their sum."""
        with self._lock:
            sums = [sum(self._counts[: n + 1]) for n in range(len(self._counts))]
            return sums, self._seconds


STEPS = StepTimes()  # this process's
