"""One direction of a connection whose window limits what it has under way."""

from __future__ import annotations

from pslite_ext.forecast.simulate.clock import Clock
from pslite_ext.forecast.simulate.link import Packet, Queue, Train, pass_on


class Connection:
    """Hands packets to its host's link while its window has room; the rest waits, in its order.

    A packet leaves the window when it has arrived and word of that is back. There is room while
    less than the window is under way, so the last packet may exceed it by a part, as with our
    transport's credit (csrc/policy/credit.cc).
    """

    __slots__ = ("_clock", "_queue", "_under_way", "_window_bytes", "_word_s")

    def __init__(self, clock: Clock, window_bytes: float, word_s: float, queue: Queue) -> None:
        self._clock = clock
        self._window_bytes = window_bytes * (1 - 1e-9)  # sums of sizes are rounded
        self._word_s = word_s
        self._queue = queue
        self._under_way = 0.0

    def send(self, what: Packet | Train) -> None:
        self._queue.push(what)
        self._pump()

    def _landed(self, packet: Packet) -> None:
        self._clock.at(self._clock.now + self._word_s, self._room, packet.size)

    def _room(self, size: float) -> None:
        self._under_way -= size
        self._pump()

    def _pump(self) -> None:
        while self._queue.waiting and self._under_way < self._window_bytes:
            packet = self._queue.pop()
            packet.landed = self._landed
            self._under_way += packet.size
            pass_on(packet)
