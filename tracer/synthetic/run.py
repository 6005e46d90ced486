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
from typing import NamedTuple

from tracer.format.record import CODE, FIRST_PACKET, MERCURY, SYNCHRONOUS
from tracer.synthetic.numbering import Event
from tracer.synthetic.plan import Plan

INITIAL = -1  # the round in which worker 0 brings in the values and everybody pulls them
Action = Callable[[int], None]


class Piece(NamedTuple):
    """What a message is about: a worker's copy of a key's part on one server, in one round."""

    worker: int
    server: int
    key: int
    number: int  # of the push's or the pull's dispatch
    iteration: int

    @property
    def place(self) -> tuple[int, int]:
        return (self.server, self.key)


Begin = Callable[[int, Piece], None]


class SyntheticRun:
    """One run. `seen` holds each node's events in the order in which they happened."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.seen: dict[tuple[str, int], list[Event]] = {
            **{("worker", w): [] for w in range(plan.workers)},
            **{("server", s): [] for s in range(plan.servers)},
        }
        self._random = random.Random(plan.seed)
        self._due: list[tuple[int, int, Action]] = []
        self._sequence = itertools.count()
        self._free: dict[tuple[str, int, int], int] = defaultdict(int)  # each link, by its sender
        self._dispatched = [0] * plan.workers
        self._open: dict[tuple[int, int], int] = {}  # messages awaited, by worker and key
        self._worker0_pulls: dict[int, int] = {}  # numbers of the pulls after initialisation
        self._left: dict[int, int] = {}  # keys that a worker still awaits
        self._round = [INITIAL] * plan.workers
        # By server and key: pushes that wait for others, pulls that wait for a value.
        self._arrived: dict[tuple[int, int, int], list[Piece]] = defaultdict(list)
        self._early: dict[tuple[int, ...], list[Piece]] = defaultdict(list)
        self._ready: set[tuple[int, ...]] = set()  # values that are there
        # In packets' mode: the last packet of a piece, and what is beyond its window.
        self._last: dict[tuple[int, int], int] = {}
        self._rest: dict[Piece, int] = {}

    def run(self) -> dict[tuple[str, int], list[Event]]:
        plan = self.plan
        keys = range(len(plan.tensors))
        for worker in range(plan.workers):
            self._left[worker] = len(keys)
            begin = self._pull if worker else self._push
            for key in keys:
                number = self._dispatch(worker) if worker else 0  # first values have no number
                self._at(plan.start_us, self._pieces(begin, worker, key, number, INITIAL))
        self._worker0_pulls = {key: self._dispatch(0) for key in keys}
        while self._due:
            time, _, action = heapq.heappop(self._due)
            action(time)
        return self.seen

    # --- time -------------------------------------------------------------------------------------

    def _at(self, time: int, action: Action) -> None:
        heapq.heappush(self._due, (time, next(self._sequence), action))

    def _carry(self, time: int, sender: str, piece: Piece, size: int) -> tuple[int, int]:
        """(when its first, when its last byte leaves) a link that may be busy."""
        rate = self.plan.bytes_per_us
        link = (sender, piece.worker, piece.server)
        begin = max(time, self._free[link])
        end = begin + (-(-size // rate) if rate else 0)
        self._free[link] = end
        return begin, end

    def _see(self, time: int, role: str, operation: str, piece: Piece, size: int) -> None:
        node, peer = piece.worker, piece.server
        if role == "server":
            node, peer = peer, node
        code = CODE[f"{operation}_{role.capitalize()}"]
        initial = piece.iteration == INITIAL
        ahead = self._asks_ahead(piece)
        event = Event(time, code, piece.key, peer, size, piece.number, initial, ahead)
        self.seen[role, node].append(event)

    def _send(self, time: int, role: str, kind: str, piece: Piece, size: int, then: Action) -> None:
        """A whole message: seen when it leaves, and by the other end when it is there."""
        receiver = "server" if role == "worker" else "worker"
        self._see(time, role, f"{kind}_Send", piece, size)
        _, end = self._carry(time, role, piece, size)

        def arrive(at: int) -> None:
            self._see(at, receiver, f"{kind}_Recv", piece, size)
            then(at)

        self._at(end + self.plan.latency_us, arrive)

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
        keys = [k for k, tensor in enumerate(plan.tensors) if iteration % tensor.every == 0]
        self._left[worker] = len(keys)
        first = time + plan.compute_us + plan.slower(worker)
        if plan.jitter_us:
            first += self._random.randint(0, plan.jitter_us)
        for place, key in enumerate(reversed(keys)):
            number = self._dispatch(worker)
            self._dispatch(worker)  # its pull
            push = self._pieces(self._push, worker, key, number, iteration)
            self._at(first + place * plan.gap_us, push)

    def _pieces(self, begin: Begin, worker: int, key: int, number: int, iteration: int) -> Action:
        """Begins all pieces of a tensor at once."""

        def action(time: int) -> None:
            pieces = self.plan.pieces(key)
            self._open[worker, key] = len(pieces)
            for server, _ in pieces:
                begin(time, Piece(worker, server, key, number, iteration))

        return action

    def _payload(self, piece: Piece) -> int:
        return dict(self.plan.pieces(piece.key))[piece.server]

    def _push(self, time: int, piece: Piece) -> None:
        size = self._payload(piece) + self.plan.push_extra
        if self.plan.mode == MERCURY:
            self._stream(time, piece, size)
        else:
            self._send(time, "worker", "Push", piece, size, lambda at: self._pushed(at, piece))
            if self._asks_ahead(piece):
                self._pull(time, piece._replace(number=piece.number + 1))

    def _asks_ahead(self, piece: Piece) -> bool:
        return self.plan.asks_ahead and self.plan.mode != MERCURY and piece.iteration != INITIAL

    def _alone(self, piece: Piece) -> bool:
        """Whether its push waits for nobody."""
        return piece.iteration == INITIAL or self.plan.training != SYNCHRONOUS

    def _value(self, piece: Piece) -> tuple[int, ...]:
        """What a pull waits for: the initial value, the sum, or that its own push was added."""
        own = self._alone(piece) and piece.iteration != INITIAL
        return (*piece.place, piece.iteration, piece.worker if own else -1)

    def _pushed(self, time: int, piece: Piece) -> None:
        """On a server: confirms when everybody's gradient is there."""
        place = (*piece.place, piece.iteration)
        self._arrived[place].append(piece)
        if not self._alone(piece) and len(self._arrived[place]) < self.plan.workers:
            return
        waiting = self._arrived.pop(place)

        def confirm(at: int) -> None:
            for push in sorted(waiting):
                self._confirm(at, push)
            self._ready.add(self._value(piece))
            for pull in self._early.pop(self._value(piece), []):
                self._answer(at + self.plan.search_us, pull)

        self._at(time + self.plan.update_us, confirm)

    def _confirm(self, time: int, piece: Piece) -> None:
        worker, key, iteration = piece.worker, piece.key, piece.iteration

        def confirmed(at: int) -> None:
            if self._asks_ahead(piece):
                return
            self._open[worker, key] -= 1
            if self._open[worker, key] == 0:
                number = self._worker0_pulls[key] if iteration == INITIAL else piece.number + 1
                pull = self._pieces(self._pull, worker, key, number, iteration)
                self._at(at + self.plan.turnaround_us, pull)

        self._send(time, "server", "Push", piece, self.plan.confirmation, confirmed)

    def _pull(self, time: int, piece: Piece) -> None:
        def asked(at: int) -> None:
            if self._value(piece) not in self._ready:
                self._early[self._value(piece)].append(piece)
            else:
                self._answer(at + self.plan.search_us, piece)

        if self.plan.mode == MERCURY:  # nobody asks; initial values take as long
            _, end = self._carry(time, "worker", piece, 0)
            self._at(end + self.plan.latency_us, asked)
        else:
            self._send(time, "worker", "Pull", piece, self.plan.request, asked)

    def _answer(self, time: int, piece: Piece) -> None:
        size = self._payload(piece) + self.plan.answer_extra

        def send(at: int) -> None:
            self._send(at, "server", "Pull", piece, size, lambda then: self._pulled(then, piece))

        self._at(time, self._summer(time, piece) if self.plan.mode == MERCURY else send)

    def _pulled(self, time: int, piece: Piece) -> None:
        self._open[piece.worker, piece.key] -= 1
        if self._open[piece.worker, piece.key]:
            return
        self._left[piece.worker] -= 1
        if self._left[piece.worker] == 0:
            self._begin(piece.worker, time)

    # --- packets: first and last of a tensor, instead of messages ---------------------------------

    def _later(self, time: int, role: str, operation: str, piece: Piece, size: int) -> None:
        self._at(time, lambda at: self._see(at, role, operation, piece, size))

    def _stream(self, time: int, piece: Piece, size: int) -> None:
        initial = piece.iteration == INITIAL
        at_once = size if initial else min(size, self.plan.window_bytes or size)
        begin, end = self._carry(time, "worker", piece, at_once)
        first, last = begin + self.plan.latency_us, end + self.plan.latency_us
        self._see(time, "worker", "Push_Send", piece, size)
        if not initial:
            packet = Event(begin, FIRST_PACKET, piece.key, piece.server, 0, piece.number)
            self._at(begin, lambda _: self.seen["worker", piece.worker].append(packet))
        self._later(first, "server", "Push_Recv", piece, size)
        if at_once == size:
            self._last_packet(end, piece)
        if initial:
            self._at(last, lambda at: self._initialised(at, piece))
        else:
            self._at(first, lambda at: self._begun(at, last, piece, size - at_once))

    def _last_packet(self, time: int, piece: Piece) -> None:
        self._later(time, "worker", "Push_Recv", piece, 0)
        self._later(time + self.plan.latency_us, "server", "Push_Send", piece, 0)

    def _initialised(self, time: int, piece: Piece) -> None:
        """On a server: worker 0's value is there."""
        self._ready.add(self._value(piece))
        begin = time + self.plan.update_us
        own = piece._replace(number=self._worker0_pulls[piece.key])
        for pull in [own, *self._early.pop(self._value(piece), [])]:
            self._at(begin, self._summer(begin, pull))

    def _begun(self, time: int, last: int, piece: Piece, rest: int) -> None:
        """On a server: a first packet is there. Sums leave once all workers have begun, and so does
        what is beyond their windows."""
        place = (*piece.place, piece.iteration)
        self._arrived[place].append(piece)
        self._rest[piece] = rest
        self._last[piece.place] = max(last, self._last.get(piece.place, 0))
        if len(self._arrived[place]) < self.plan.workers:
            return
        waiting = sorted(self._arrived.pop(place))
        complete = self._last.pop(piece.place)
        for push in waiting:
            if rest := self._rest.pop(push):
                _, end = self._carry(time + self.plan.latency_us, "worker", push, rest)
                self._last_packet(end, push)
                complete = max(complete, end + self.plan.latency_us)
        for push in waiting:
            action = self._summer(
                complete + self.plan.update_us, push._replace(number=push.number + 1)
            )
            self._at(time + self.plan.update_us, action)

    def _summer(self, complete: int, piece: Piece) -> Action:
        """Sends sums; the last of them not before `complete`."""

        def send(time: int) -> None:
            size = self._payload(piece) + self.plan.answer_extra
            begin, end = self._carry(time, "server", piece, size)
            end = self._free["server", piece.worker, piece.server] = max(end, complete)
            latency = self.plan.latency_us
            self._later(begin, "server", "Pull_Recv", piece, 0)
            self._later(end, "server", "Pull_Send", piece, size)
            self._later(begin + latency, "worker", "Pull_Send", piece, 0)
            self._later(end + latency, "worker", "Pull_Recv", piece, size)
            self._at(end + latency, lambda at: self._pulled(at, piece))

        return send
