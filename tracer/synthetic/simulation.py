"""Made-up traffic of a plan, event by event: who saw which message when.

Links carry one message at a time, in order. Everything else takes exactly the time that the plan
says, so that the overheads an analysis must find are known.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections import defaultdict
from collections.abc import Callable

from tracer.format.record import CODE, MERCURY, SYNCHRONOUS
from tracer.synthetic.numbering import Event
from tracer.synthetic.plan import Plan

INITIAL = -1  # the round in which worker 0 brings in the values and everybody pulls them
Node = tuple[str, int]


class Simulation:
    """One run. `seen` holds each node's events in the order in which they happened."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.seen: dict[Node, list[Event]] = {
            **{("worker", w): [] for w in range(plan.workers)},
            **{("server", s): [] for s in range(plan.servers)},
        }
        self._random = random.Random(plan.seed)
        self._due: list[tuple[int, int, Callable[[int], None]]] = []
        self._sequence = itertools.count()
        self._free: dict[tuple[Node, Node], int] = defaultdict(int)
        self._dispatched = [0] * plan.workers
        self._open: dict[tuple[int, int], int] = {}  # messages awaited, by worker and key
        self._worker0_pulls: dict[int, int] = {}  # numbers of the pulls after initialisation
        self._left: dict[int, int] = {}  # keys that a worker still awaits
        self._round = [INITIAL] * plan.workers
        self._arrived: dict[tuple[int, int, int], list[tuple[int, int]]] = defaultdict(list)
        self._ready: dict[tuple[int, int], int] = {}  # since when a piece has its initial value
        self._last: dict[tuple[int, int], int] = {}  # the last packet of a piece, in packets' mode
        self._early: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)

    def run(self) -> dict[Node, list[Event]]:
        plan = self.plan
        keys = range(len(plan.tensors))
        for worker in range(plan.workers):
            self._left[worker] = len(keys)
            for key in keys:
                number = self._dispatch(worker)
                if worker == 0:
                    self._at(plan.start_us, self._pusher(0, key, number, INITIAL))
                else:
                    self._at(plan.start_us, self._puller(worker, key, number, INITIAL))
        self._worker0_pulls = {key: self._dispatch(0) for key in keys}
        while self._due:
            time, _, action = heapq.heappop(self._due)
            action(time)
        return self.seen

    # --- time -------------------------------------------------------------------------------------

    def _at(self, time: int, action: Callable[[int], None]) -> None:
        heapq.heappush(self._due, (time, next(self._sequence), action))

    def _carry(self, time: int, source: Node, target: Node, size: int) -> tuple[int, int]:
        """(when its first, when its last byte leaves) a link that may be busy."""
        rate = self.plan.bytes_per_us
        begin = max(time, self._free[source, target])
        end = begin + (-(-size // rate) if rate else 0)
        self._free[source, target] = end
        return begin, end

    def _see(
        self, time: int, node: Node, operation: str, key: int, peer: int, size: int, number: int,
        iteration: int,
    ) -> None:  # fmt: skip
        code = CODE[f"{operation}_{node[0].capitalize()}"]
        event = Event(time, code, key, peer, size, number, iteration == INITIAL)
        self.seen[node].append(event)

    def _later(
        self, time: int, node: Node, operation: str, key: int, peer: int, size: int, number: int,
        iteration: int,
    ) -> None:  # fmt: skip
        def see(at: int) -> None:
            self._see(at, node, operation, key, peer, size, number, iteration)

        self._at(time, see)

    def _dispatch(self, worker: int) -> int:
        self._dispatched[worker] += 1
        return self._dispatched[worker]

    # --- a worker ---------------------------------------------------------------------------------

    def _begin(self, worker: int, time: int) -> None:
        """The next iteration: its gradients become ready one after another, last layer first."""
        plan = self.plan
        self._round[worker] += 1
        iteration = self._round[worker]
        if iteration >= plan.iterations:
            return
        self._left[worker] = len(plan.tensors)
        first = time + plan.compute_us + plan.slower(worker)
        if plan.jitter_us:
            first += self._random.randint(0, plan.jitter_us)
        for place, key in enumerate(reversed(range(len(plan.tensors)))):
            number = self._dispatch(worker)
            self._dispatch(worker)  # its pull
            self._at(first + place * plan.gap_us, self._pusher(worker, key, number, iteration))

    def _pusher(self, worker: int, key: int, number: int, iteration: int) -> Callable[[int], None]:
        def push(time: int) -> None:
            pieces = self.plan.pieces(key)
            self._open[worker, key] = len(pieces)
            for server, payload in pieces:
                if self.plan.mode == MERCURY:
                    self._stream(time, worker, server, key, payload, number, iteration)
                else:
                    self._push(time, worker, server, key, payload, number, iteration)

        return push

    def _push(
        self, time: int, worker: int, server: int, key: int, payload: int, number: int,
        iteration: int,
    ) -> None:  # fmt: skip
        size = payload + self.plan.push_extra
        here, there = ("worker", worker), ("server", server)
        self._see(time, here, "Push_Send", key, server, size, number, iteration)
        _, end = self._carry(time, here, there, size)

        def arrive(at: int) -> None:
            self._see(at, there, "Push_Recv", key, worker, size, number, iteration)
            self._pushed(at, worker, server, key, number, iteration)

        self._at(end + self.plan.latency_us, arrive)

    def _pushed(
        self, time: int, worker: int, server: int, key: int, number: int, iteration: int
    ) -> None:
        """On a server: confirms when everybody's gradient is there."""
        place = (server, key, iteration)
        self._arrived[place].append((worker, number))
        alone = iteration == INITIAL or self.plan.training != SYNCHRONOUS
        if not alone and len(self._arrived[place]) < self.plan.workers:
            return
        waiting = self._arrived.pop(place)

        def confirm(at: int) -> None:
            for peer, its_number in sorted(waiting):
                self._confirm(at, peer, server, key, its_number, iteration)
            if iteration == INITIAL:
                self._ready[server, key] = at
                for peer, its_number in self._early.pop((server, key), []):
                    self._answer(at + self.plan.search_us, peer, server, key, its_number, INITIAL)

        self._at(time + self.plan.update_us, confirm)

    def _confirm(
        self, time: int, worker: int, server: int, key: int, number: int, iteration: int
    ) -> None:
        here, there, size = ("server", server), ("worker", worker), self.plan.confirmation
        self._see(time, here, "Push_Send", key, worker, size, number, iteration)
        _, end = self._carry(time, here, there, size)

        def arrive(at: int) -> None:
            self._see(at, there, "Push_Recv", key, server, size, number, iteration)
            self._open[worker, key] -= 1
            if self._open[worker, key] == 0:
                pull = self._worker0_pulls[key] if iteration == INITIAL else number + 1
                action = self._puller(worker, key, pull, iteration)
                self._at(at + self.plan.turnaround_us, action)

        self._at(end + self.plan.latency_us, arrive)

    def _puller(self, worker: int, key: int, number: int, iteration: int) -> Callable[[int], None]:
        def pull(time: int) -> None:
            pieces = self.plan.pieces(key)
            self._open[worker, key] = len(pieces)
            for server, _ in pieces:
                self._pull(time, worker, server, key, number, iteration)

        return pull

    def _pull(
        self, time: int, worker: int, server: int, key: int, number: int, iteration: int
    ) -> None:
        size = self.plan.request if self.plan.mode != MERCURY else 0
        here, there = ("worker", worker), ("server", server)
        if self.plan.mode != MERCURY:
            self._see(time, here, "Pull_Send", key, server, size, number, iteration)
        _, end = self._carry(time, here, there, size)

        def arrive(at: int) -> None:
            if self.plan.mode != MERCURY:
                self._see(at, there, "Pull_Recv", key, worker, size, number, iteration)
            if iteration == INITIAL and (server, key) not in self._ready:
                self._early[server, key].append((worker, number))
            else:
                self._answer(at + self.plan.search_us, worker, server, key, number, iteration)

        self._at(end + self.plan.latency_us, arrive)

    def _answer(
        self, time: int, worker: int, server: int, key: int, number: int, iteration: int
    ) -> None:
        payload = dict(self.plan.pieces(key))[server]
        if self.plan.mode == MERCURY:
            self._at(time, self._summer(time, worker, server, key, number, iteration))
            return

        def send(at: int) -> None:
            size = payload + self.plan.answer_extra
            here, there = ("server", server), ("worker", worker)
            self._see(at, here, "Pull_Send", key, worker, size, number, iteration)
            _, end = self._carry(at, here, there, size)

            def arrive(then: int) -> None:
                self._see(then, there, "Pull_Recv", key, server, size, number, iteration)
                self._pulled(then, worker, key)

            self._at(end + self.plan.latency_us, arrive)

        self._at(time, send)

    def _pulled(self, time: int, worker: int, key: int) -> None:
        self._open[worker, key] -= 1
        if self._open[worker, key]:
            return
        self._left[worker] -= 1
        if self._left[worker] == 0:
            self._begin(worker, time)

    # --- packets: first and last of a tensor, instead of messages ---------------------------------

    def _stream(
        self, time: int, worker: int, server: int, key: int, payload: int, number: int,
        iteration: int,
    ) -> None:  # fmt: skip
        size = payload + self.plan.push_extra
        here, there = ("worker", worker), ("server", server)
        begin, end = self._carry(time, here, there, size)

        def at(when: int, node: Node, operation: str, peer: int, length: int) -> None:
            self._later(when, node, operation, key, peer, length, number, iteration)

        first, last = begin + self.plan.latency_us, end + self.plan.latency_us
        at(begin, here, "Push_Send", server, size)
        at(end, here, "Push_Recv", server, 0)
        at(first, there, "Push_Recv", worker, size)
        at(last, there, "Push_Send", worker, 0)
        if iteration == INITIAL:
            self._at(last, lambda t: self._initialised(t, server, key))
        else:
            self._at(first, lambda t: self._begun(t, last, worker, server, key, number, iteration))

    def _initialised(self, time: int, server: int, key: int) -> None:
        """On a server: worker 0's value is there."""
        self._ready[server, key] = time
        begin = time + self.plan.update_us
        for peer, number in [(0, self._worker0_pulls[key]), *self._early.pop((server, key), [])]:
            self._at(begin, self._summer(begin, peer, server, key, number, INITIAL))

    def _begun(
        self, time: int, last: int, worker: int, server: int, key: int, number: int,
        iteration: int,
    ) -> None:  # fmt: skip
        """On a server: a first packet is there. Sums leave once all workers have begun."""
        waiting = self._arrived[server, key, iteration]
        waiting.append((worker, number))
        self._last[server, key] = max(last, self._last.get((server, key), 0))
        if len(waiting) < self.plan.workers:
            return
        complete = self._last.pop((server, key)) + self.plan.update_us
        for peer, its_number in sorted(self._arrived.pop((server, key, iteration))):
            action = self._summer(complete, peer, server, key, its_number + 1, iteration)
            self._at(time + self.plan.update_us, action)

    def _summer(
        self, complete: int, worker: int, server: int, key: int, number: int, iteration: int
    ) -> Callable[[int], None]:
        """Sends sums; the last of them not before `complete`."""

        def send(time: int) -> None:
            size = dict(self.plan.pieces(key))[server] + self.plan.answer_extra
            here, there = ("server", server), ("worker", worker)
            begin, end = self._carry(time, here, there, size)
            end = self._free[here, there] = max(end, complete)

            def see(when: int, node: Node, operation: str, peer: int, length: int) -> None:
                self._later(when, node, operation, key, peer, length, number, iteration)

            latency = self.plan.latency_us
            see(begin, here, "Pull_Recv", worker, 0)
            see(end, here, "Pull_Send", worker, size)
            see(begin + latency, there, "Pull_Send", server, 0)
            see(end + latency, there, "Pull_Recv", server, size)
            self._at(end + latency, lambda at: self._pulled(at, worker, key))

        return send
