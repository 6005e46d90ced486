"""Workers that catch up with each other, as ours do (csrc/packets/levels.h, csrc/policy)."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Callable

from pslite_ext.forecast.simulate.link import Packet, Train, Trains


class Level:
    """How far workers have come with one iteration's packets of a piece for one server."""

    def __init__(self, workers: int) -> None:
        self.front = 0  # packets of the one that has come furthest
        self.trains: list[LevelledTrain] = []
        self._landed = [0] * workers

    def came(self, worker: int) -> None:
        """One more of its packets; word of that takes no time."""
        self._landed[worker] += 1
        if self._landed[worker] > self.front:
            self.front = self._landed[worker]
            for train in self.trains:
                train.falls_behind()


class LevelledTrain(Train):
    __slots__ = ("_level", "behind", "queue")

    def __init__(
        self,
        priority: int,
        packets: Sequence[int],
        make: Callable[[int], Packet],
        flow: int,
        level: Level,
    ) -> None:
        super().__init__(priority, packets, make, flow)
        self._level = level
        self.behind = False
        self.queue: CatchingUp | None = None
        level.trains.append(self)

    def falls_behind(self) -> None:
        if not self.behind and self.queue is not None and self.taken < self._level.front:
            self.behind = True
            self.queue.behind.append(self)

    def take(self) -> Packet:
        packet = super().take()
        if self.behind and self.taken >= self._level.front:
            self.behind = False
            assert self.queue is not None
            self.queue.behind.remove(self)
        return packet


class CatchingUp(Trains):
    """What a worker has to send to a server: every other packet is of what it is behind with.

    That is so until the most urgent train is there: then none will come in between.
    """

    def __init__(self) -> None:
        super().__init__()
        self.behind: list[LevelledTrain] = []
        self._gives_way = False
        self._most_urgent: int | None = None

    def push(self, packet: LevelledTrain) -> None:
        super().push(packet)
        packet.queue = self
        packet.falls_behind()
        if self._most_urgent is None or packet.priority < self._most_urgent:
            self._most_urgent = packet.priority

    def pop(self) -> Packet:
        train: LevelledTrain = self.waiting[0][2]
        if self._gives_way and train.priority != self._most_urgent:
            train = next((each for each in self.behind if each is not train), train)
        self._gives_way = not train.behind
        packet = train.take()
        while self.waiting and not self.waiting[0][2].left:
            heapq.heappop(self.waiting)
        return packet
