"""How a node numbers what it sees: operation_num, dependency and d_time, one event at a time.

This is what a capture has to do while a job runs. Its memory is bounded by keys and peers, not by
the length of the run. docs/trace-format.md says the same in words.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tracer.format import record as rec
from tracer.format.line import list_text
from tracer.format.record import Header, Records

PUSH, CONFIRM, REQUEST, ANSWER = range(rec.STAGES)  # the stage of an operation within its iteration


@dataclass(frozen=True)
class Event:
    time: int
    operation: int
    key: int
    peer: int  # rank of the other end
    length: int
    num_pp: int
    initial: bool = False
    ahead: bool = False  # a request right behind its push: it did not wait for the confirmation


@dataclass
class NodeNumbering:
    """The rows of one worker's or server's file."""

    header: Header
    columns: dict[str, list[int]] = field(default_factory=lambda: {n: [] for n, _ in rec.COLUMNS})
    lists: dict[str, int] = field(default_factory=dict)
    # By key and peer: the first number of the iteration, and the last stage that it has filled.
    _place: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    _pushed: dict[tuple[int, int], bool] = field(default_factory=dict)  # whether with a push
    _time: dict[tuple[int, int, int], int] = field(default_factory=dict)  # by key, peer, stage
    # When a number's pushes or answers were last seen: by key on a server, by server on a worker.
    _latest: dict[tuple[int, int], int] = field(default_factory=dict)
    _answered: dict[tuple[int, int], int] = field(default_factory=dict)  # number, by key and peer
    _peers: set[int] = field(default_factory=set)  # servers that a worker has pulled from

    @property
    def _on_server(self) -> bool:
        return self.header.role == "server"

    def setup(self, server: int, length: int, reply_length: int) -> None:
        """A command to a server, and its reply."""
        here, there = self.header.rank_id, self._peer_id(server)
        for operation, src, dst, size in (
            (rec.COMMAND, here, there, length),
            (rec.REPLY, there, here, reply_length),
        ):
            self._row(operation=operation, src=src, dst=dst, length=size, num_pp=rec.SETUP_NUM_PP)

    def add(self, event: Event) -> None:
        if event.operation == rec.FIRST_PACKET:
            self._first_packet(event)
            return
        stage = event.operation % rec.STAGES
        number = self._number(event, stage)
        dep_type, dep, since = self._depends(event, stage, number)
        kind = rec.DEP_NONE if not dep else rec.DEP_ONE if isinstance(dep, tuple) else rec.DEP_LIST
        one = dep if isinstance(dep, tuple) else (0, 0, 0)
        if isinstance(dep, list):
            one = (0, self.lists.setdefault(list_text(dep), len(self.lists)), 0)
        here, there = self.header.rank_id, self._peer_id(event.peer)
        sends = "_Send_" in rec.OPERATIONS[event.operation]
        self._row(
            operation=event.operation,
            src=here if sends else there,
            dst=there if sends else here,
            length=event.length,
            num_pp=rec.INITIAL_NUM_PP if event.initial and stage < REQUEST else event.num_pp,
            key=event.key,
            op_num=number,
            node=self._node(event.peer),
            dep_type=dep_type,
            d_time=event.time - since if since is not None else 0,
            time=event.time,
            dep_kind=kind,
            dep_key=one[0],
            dep_num=one[1],
            dep_node=one[2],
        )
        self._time[event.key, event.peer, stage] = event.time
        latest = (event.key if self._on_server else event.peer, number)
        if stage == ANSWER or (stage == PUSH and self._on_server):
            self._latest[latest] = max(event.time, self._latest.get(latest, event.time))
            self._latest.pop((latest[0], number - 2 * rec.STAGES), None)
        if stage == ANSWER:
            self._answered[event.key, event.peer] = number
            self._peers.add(event.peer)

    def _first_packet(self, event: Event) -> None:
        """Depends on its push, whose number it has: d_time is the time in the queue."""
        number, _ = self._place[event.key, event.peer]
        node = self._node(event.peer)
        self._row(
            operation=event.operation,
            src=self.header.rank_id,
            dst=self._peer_id(event.peer),
            num_pp=event.num_pp,
            key=event.key,
            op_num=number,
            node=node,
            dep_type=rec.PUSH_ON_PUSH,
            d_time=event.time - self._time[event.key, event.peer, PUSH],
            time=event.time,
            dep_kind=rec.DEP_ONE,
            dep_key=event.key,
            dep_num=number,
            dep_node=node,
        )

    def records(self) -> Records:
        return Records.of(self.columns, list(self.lists))

    def _row(self, **values: int) -> None:
        for name, column in self.columns.items():
            column.append(len(column) if name == "id" else values.get(name, 0))

    def _peer_id(self, peer: int) -> int:
        role = "worker" if self._on_server else "server"
        return rec.rank_id(role, peer, self.header.workers, self.header.servers)

    def _node(self, peer: int) -> int:
        return rec.node_code(rec.WORKER if self._on_server else rec.SERVER, peer)

    def _number(self, event: Event, stage: int) -> int:
        """Four numbers to an iteration. A push opens one, and so does a pull without a push."""
        first = self.header.first_op
        if event.initial:
            return first - rec.STAGES + stage
        place = (event.key, event.peer)
        base, last = self._place.get(place, (first, -1))
        if last >= 0 and (stage == PUSH or (stage == REQUEST and last >= REQUEST)):
            base, last = base + rec.STAGES, -1
        if last < 0:
            self._pushed[place] = stage == PUSH
        self._place[place] = (base, max(last, stage))
        return base + stage

    def _depends(
        self, event: Event, stage: int, number: int
    ) -> tuple[int, tuple[int, int, int] | list[tuple[int, int]] | None, int | None]:
        """(dep_type, one record or a list, when the latest of them was)."""
        mercury = self.header.mode == rec.MERCURY
        key, node = event.key, self._node(event.peer)
        together = self._on_server and self.header.training == rec.SYNCHRONOUS and not event.initial
        everybody = [rec.node_code(rec.WORKER, w) for w in range(self.header.workers)]

        def one(back: int) -> tuple[tuple[int, int, int], int | None]:
            since = self._time.get((key, event.peer, stage - back))
            return (key, number - back, node), since

        def pushes() -> tuple[list[tuple[int, int]], int | None]:
            at = number - stage
            return [(at, n) for n in everybody], self._latest.get((key, at))

        if stage == PUSH:
            if event.initial:
                return rec.INDEPENDENT, None, None
            if self._on_server:
                if self._answered.get((key, event.peer)) != number - 1:
                    return rec.INDEPENDENT, None, None
                peers = everybody if together else [node]
                own = self._time.get((key, event.peer, ANSWER))
                since = self._latest.get((key, number - 1)) if together else own
                return rec.PUSH_ON_PULL, [(number - 1, peer) for peer in peers], since
            told = [s for s in sorted(self._peers) if (s, number - 1) in self._latest]
            if not told:
                return rec.INDEPENDENT, None, None
            since = max(self._latest[s, number - 1] for s in told)
            answers = [(number - 1, rec.node_code(rec.SERVER, s)) for s in told]
            return rec.PUSH_ON_PULL, answers, since
        if stage == CONFIRM:
            if together and not mercury:
                return (rec.PUSH_ON_PUSH, *pushes())
            return (rec.PUSH_ON_PUSH, *one(1))
        if stage == REQUEST:
            if event.initial and (key, event.peer, PUSH) not in self._time:
                return rec.INDEPENDENT, None, None
            if not event.initial and not self._pushed[key, event.peer]:
                return rec.INDEPENDENT, None, None
            if mercury and together:
                return (rec.PULL_ON_PUSH, *pushes())
            return (rec.PULL_ON_PUSH, *one(2 if mercury or event.ahead else 1))
        return (rec.PULL_ON_PULL, *one(1))
