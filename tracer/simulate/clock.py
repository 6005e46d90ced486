"""Simulated time: what happens next, in order of time and then of scheduling."""

from __future__ import annotations

import heapq
from typing import Any, Callable


class Clock:
    """A queue of calls. An event costs O(log of those pending)."""

    __slots__ = ("_order", "_pending", "events", "now")

    def __init__(self) -> None:
        self.now = 0.0
        self.events = 0
        self._order = 0
        self._pending: list[tuple[float, int, Callable[[Any], None], Any]] = []

    def at(self, time: float, call: Callable[[Any], None], argument: Any = None) -> None:
        self._order += 1
        heapq.heappush(self._pending, (time, self._order, call, argument))

    def step(self) -> bool:
        """Runs the next call; False when there is none."""
        if not self._pending:
            return False
        self.now, _, call, argument = heapq.heappop(self._pending)
        self.events += 1
        call(argument)
        return True
