"""A node's process, which takes what has arrived when it gets a processor."""

from __future__ import annotations

import random

from pslite_ext.forecast.simulate.clock import Clock
from pslite_ext.forecast.simulate.link import Packet, pass_on


class Reader:
    """The last hop: takes all that has come, a random while after the first of it came."""

    __slots__ = ("_clock", "_come", "_random", "_reaction_s")

    def __init__(self, clock: Clock, reaction_s: float, seed: int) -> None:
        self._clock = clock
        self._reaction_s = reaction_s
        self._random = random.Random(seed)
        self._come: list[Packet] = []

    def send(self, packet: Packet) -> None:
        self._come.append(packet)
        if len(self._come) == 1:
            after = self._random.expovariate(1 / self._reaction_s)
            self._clock.at(self._clock.now + after, self._take)

    def _take(self, _: None) -> None:
        taken, self._come = self._come, []
        for packet in taken:
            pass_on(packet)
