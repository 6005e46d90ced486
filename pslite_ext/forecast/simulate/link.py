"""One direction of a link: packets one after another, in the order its queue decides."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence, Sized
from typing import Any, Callable, Protocol

from pslite_ext.forecast.model import ModelError
from pslite_ext.forecast.model.job import number
from pslite_ext.forecast.simulate.clock import Clock

JOB_BITS = 32  # of a flow's number; what is above is its job's


class Hop(Protocol):
    """What packets pass, or end at."""

    def send(self, packet: Packet) -> None: ...


class Packet:
    """Consecutive bytes of one tensor on their way along `path`; then `arrive` is called."""

    __slots__ = (
        "arrive",
        "began",
        "flow",
        "hold_s",
        "hop",
        "info",
        "landed",
        "path",
        "priority",
        "size",
    )

    def __init__(
        self,
        size: float,
        priority: int,
        flow: int,
        path: tuple[Hop, ...],
        arrive: Callable[[Any], None],
        info: Any,
    ) -> None:
        self.size = size
        self.priority = priority  # smaller is more urgent
        self.flow = flow  # what shares fairly with other flows, and keeps its own order
        self.path = path
        self.hop = 0
        self.arrive = arrive
        self.info = info
        self.hold_s = 0.0  # how long the first link idles before it
        self.began: Callable[[Packet], None] | None = None  # told when the first link begins
        self.landed: Callable[[Packet], None] | None = None  # whose window it is in hears first


class Train:
    """Packets of one piece, made one at a time, when their link or connection takes them."""

    __slots__ = ("_make", "_packets", "flow", "priority", "taken")

    def __init__(
        self, priority: int, packets: Sequence[int], make: Callable[[int], Packet], flow: int = 0
    ) -> None:
        self.priority = priority
        self.flow = flow
        self._packets = packets
        self.taken = 0
        self._make = make

    @property
    def left(self) -> int:
        return len(self._packets) - self.taken

    def take(self) -> Packet:
        packet = self._make(self._packets[self.taken])
        self.taken += 1
        return packet


class Queue(Protocol):
    """Packets that wait; `waiting` is false when there are none."""

    @property
    def waiting(self) -> Sized: ...

    def push(self, packet: Any) -> None: ...

    def pop(self) -> Packet: ...


class InOrder:
    """First come, first served."""

    def __init__(self) -> None:
        self.waiting: deque[Packet] = deque()
        self.push = self.waiting.append
        self.pop = self.waiting.popleft


class ByPriority:
    """The most urgent packet; among equals the first to come."""

    def __init__(self) -> None:
        self.waiting: list[tuple[int, int, Any]] = []
        self._order = 0

    def push(self, packet: Any) -> None:
        self._order += 1
        heapq.heappush(self.waiting, (packet.priority, self._order, packet))

    def pop(self) -> Packet:
        packet: Packet = heapq.heappop(self.waiting)[2]
        return packet


class Trains(ByPriority):
    """What a node has to send: the most urgent train's next packet; among equals the first's."""

    def pop(self) -> Packet:
        train: Train = self.waiting[0][2]
        packet = train.take()
        if not train.left:
            heapq.heappop(self.waiting)
        return packet


class Fair:
    """Every waiting flow gets the same share: start-time fair queueing.

    A packet is tagged with the bytes its flow would have been served, had all shared equally, when
    its turn starts; the smallest tag goes first.
    """

    def __init__(self) -> None:
        self.waiting: list[tuple[float, int, Packet]] = []
        self._order = 0
        self._served = 0.0
        self._flow_end: dict[int, float] = {}

    def push(self, packet: Packet) -> None:
        tag = max(self._served, self._flow_end.get(packet.flow, 0.0))
        self._flow_end[packet.flow] = tag + packet.size
        self._order += 1
        heapq.heappush(self.waiting, (tag, self._order, packet))

    def pop(self) -> Packet:
        self._served, _, packet = heapq.heappop(self.waiting)
        if not self.waiting:  # everybody starts anew
            self._flow_end.clear()
            self._served = 0.0
        return packet


class JobsInTurn:
    """A queue for each job; those that wait get the same share: start-time fair queueing.

    What is urgent to one job is not known to be so to another, which numbers its own tensors and
    has connections of its own.
    """

    def __init__(self, make: Callable[[], Queue]) -> None:
        self._make = make
        self._queues: dict[int, Queue] = {}
        self._ends: dict[int, float] = {}  # bytes that each would have had when its turn is over
        self._served = 0.0

    @property
    def waiting(self) -> list[int]:
        return [job for job, queue in self._queues.items() if queue.waiting]

    def push(self, item: Packet | Train) -> None:
        job = item.flow >> JOB_BITS
        if job not in self._queues:
            self._queues[job] = self._make()
        if not self._queues[job].waiting:
            self._ends[job] = max(self._served, self._ends.get(job, 0.0))
        self._queues[job].push(item)

    def pop(self) -> Packet:
        job = min(self.waiting, key=self._ends.__getitem__)
        packet = self._queues[job].pop()
        self._served = self._ends[job]
        self._ends[job] += packet.size
        return packet


QUEUES: dict[str, Callable[[], Queue]] = {"priority": ByPriority, "fair": Fair, "fifo": InOrder}


class Rate:
    """Bytes per second over time: constant pieces, the last of which lasts forever."""

    def __init__(self, pieces: Sequence[tuple[float, float]]) -> None:
        self.times = [number("the time of a link's rate", time) for time, _ in pieces]
        self.rates = [number("a link's rate", rate, above_zero=True) for _, rate in pieces]
        if not self.times or self.times[0] != 0:
            raise ModelError("a link's rates begin at time 0")
        if sorted(set(self.times)) != self.times:
            raise ModelError("a link's rates must each begin later than the one before")

    @classmethod
    def of(cls, rate: float | Sequence[tuple[float, float]]) -> Rate:
        return cls([(0.0, rate)] if isinstance(rate, (int, float)) else rate)

    def at(self, time: float) -> float:
        return self.rates[bisect_right(self.times, time) - 1]

    def end(self, start: float, size: float) -> float:
        """When `size` bytes that begin at `start` are through."""
        if len(self.rates) == 1:
            return start + size / self.rates[0]
        piece = bisect_right(self.times, start) - 1
        while piece + 1 < len(self.rates):
            room = (self.times[piece + 1] - start) * self.rates[piece]
            if size <= room:
                break
            size -= room
            start = self.times[piece + 1]
            piece += 1
        return start + size / self.rates[piece]


class Link:
    """Sends a packet at a time and passes it on whole, `latency_s` later."""

    __slots__ = (
        "_busy",
        "_clock",
        "_latency_s",
        "_queue",
        "_rate",
        "_waiting_bytes",
        "busy_s",
        "bytes",
        "name",
        "queue_bytes",
    )

    def __init__(self, clock: Clock, name: str, rate: Rate, latency_s: float, queue: Queue) -> None:
        self.name = name
        self.bytes = 0.0  # carried so far
        self.busy_s = 0.0
        self.queue_bytes = 0.0  # that waited here at once, at most; not of trains
        self._waiting_bytes = 0.0
        self._clock = clock
        self._rate = rate
        self._latency_s = latency_s
        self._queue = queue
        self._busy = False

    def send(self, packet: Packet) -> None:
        if not self._busy:
            self._busy = True
            self._start(packet)
            return
        self._queue.push(packet)
        self._waiting_bytes += packet.size
        if self._waiting_bytes > self.queue_bytes:
            self.queue_bytes = self._waiting_bytes

    def feed(self, train: Train) -> None:
        """For a link with `Trains`: all that its node sends at this very moment takes part."""
        self._queue.push(train)
        if not self._busy:
            self._busy = True
            self._clock.at(self._clock.now, self._start_next)

    def _start_next(self, _: None) -> None:
        self._start(self._queue.pop())

    def _start(self, packet: Packet) -> None:
        now = begin = self._clock.now
        if packet.hop == 1:
            if packet.began:
                packet.began(packet)
            begin += packet.hold_s
        end = self._rate.end(begin, packet.size)
        self.bytes += packet.size
        self.busy_s += end - now
        self._clock.at(end, self._end, packet)

    def _end(self, packet: Packet) -> None:
        if self._queue.waiting:
            following = self._queue.pop()
            self._waiting_bytes -= following.size
            self._start(following)
        else:
            self._busy = False
        if self._latency_s:
            self._clock.at(self._clock.now + self._latency_s, pass_on, packet)
        else:
            pass_on(packet)


def pass_on(packet: Packet) -> None:
    """To the packet's next hop, or to where it was sent."""
    if packet.hop < len(packet.path):
        hop = packet.path[packet.hop]
        packet.hop += 1
        hop.send(packet)
        return
    if packet.landed is not None:
        packet.landed(packet)
    packet.arrive(packet)
