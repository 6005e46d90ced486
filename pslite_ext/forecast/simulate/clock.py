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

    def run(self, events: int) -> bool:
        """Makes the next calls, so many at most; False when none are left."""
        pending, pop = self._pending, heapq.heappop
        for _ in range(events):
            if not pending:
                return False
            self.now, _order, call, argument = pop(pending)
            self.events += 1
            call(argument)
        return bool(pending)
