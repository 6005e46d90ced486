"""What a trace file holds: header, records as columns, notes. docs/trace-format.md is its text.

Reader, writer, generator and analysis all take the names and numbers of the format from here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Annotated, Any, get_type_hints

import numpy as np
import numpy.typing as npt

from tracer.format.step_numbers import StepNumbers

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Array = npt.NDArray[Any]

COLUMN_LINE = "id src dst length num_pp operation op_id dep_type d_time time_sec time_usec id_dep"
INITIAL_NUM_PP = -15
SETUP_NUM_PP = 0

# The code of an operation is its place in this list; the first eight are the training traffic.
OPERATIONS = (
    "Push_Send_Worker",
    "Push_Recv_Worker",
    "Pull_Send_Worker",
    "Pull_Recv_Worker",
    "Push_Recv_Server",
    "Push_Send_Server",
    "Pull_Recv_Server",
    "Pull_Send_Server",
    "SendCom_TO_Servers",
    "SendCom_To_Servers",
    "Register_Send",
    "Register_Recv",
    "Barrier_Send",
    "Barrier_Recv",
    "Heartbeat_Send",
    "Heartbeat_Recv",
    "Terminate_Send",
    "Terminate_Recv",
    "First_Packet",
)
CODE = {name: code for code, name in enumerate(OPERATIONS)}
DATA_OPERATIONS = 8
SETUP_CODES = COMMAND, REPLY = CODE["SendCom_TO_Servers"], CODE["SendCom_To_Servers"]
FIRST_PACKET = CODE["First_Packet"]  # of a push; beside the four operations of an iteration

# Within one key, node and iteration the operations come in this order, four to an iteration.
STAGES = 4

INDEPENDENT, PUSH_ON_PUSH, PULL_ON_PUSH, PULL_ON_PULL, PUSH_ON_PULL = range(5)
DEP_NAMES = ("independent", "Push_on_Push", "Pull_on_Push", "Pull_on_Pull", "Push_on_Pull")
# What the four operations of an iteration depend on, by stage; the same on workers and servers.
DEP_TYPES_OF_STAGE = (PUSH_ON_PULL, PUSH_ON_PUSH, PULL_ON_PUSH, PULL_ON_PULL)

DEP_NONE, DEP_ONE, DEP_LIST = range(3)

ROLES = ("worker", "server", "scheduler")
ROLE_LETTERS = "wsh"
WORKER, SERVER, SCHEDULER = range(3)

MODES = ZMQ, MERCURY = "zmq", "mercury"
# Where tensors travel as packets only two of the four records are messages as a whole.
WHOLE_MESSAGES = {ZMQ: tuple(range(DATA_OPERATIONS)), MERCURY: (0, 3, 4, 7)}
TRAININGS = SYNCHRONOUS, ASYNCHRONOUS = "synchronous", "asynchronous"
NODES_MOST = 100_000  # workers, servers, ranks: a header that says more is damaged


def whole_number(word: str) -> int | None:
    """As notes and headers have them; None: it is none, or none that 64 bits hold."""
    return int(word) if word.isascii() and word.isdigit() and len(word) <= 18 else None


def node_code(role: int, rank: int) -> int:
    """One number for the other end that an op_id names (`s0`, `w1`, `h0`)."""
    return rank * len(ROLES) + role


def node_text(code: int) -> str:
    rank, role = divmod(code, len(ROLES))
    return f"{ROLE_LETTERS[role]}{rank}"


@dataclass(frozen=True)
class Header:
    """The block between the lines of `==`."""

    role: str = "worker"
    rank: int = 0
    workers: int = 1
    servers: int = 1
    host: str = ""
    run: str = ""
    mode: str = ZMQ
    training: str = SYNCHRONOUS
    version: int = 1
    extra: tuple[str, ...] = ()  # lines of others, kept as they are
    guessed: frozenset[str] = field(default=frozenset(), compare=False)  # not said: by its records

    @property
    def node(self) -> str:
        return f"{self.role} {self.rank}"

    @property
    def first_op(self) -> int:
        """The operation_num with which training starts in this node's file."""
        return 4 if self.node == "worker 0" else 2

    @property
    def rank_id(self) -> int:
        """This node's number in the columns src and dst."""
        return rank_id(self.role, self.rank, self.workers, self.servers)


def rank_id(role: str, rank: int, workers: int, servers: int) -> int:
    """Workers 0..W-1, servers W..W+S-1, the scheduler W+S."""
    return {"worker": rank, "server": workers + rank, "scheduler": workers + servers}[role]


@dataclass(frozen=True)
class Note:
    """A `# ...` line of the body; `before` is the number of records in front of it."""

    before: int
    text: str

    @property
    def words(self) -> list[str]:
        return self.text.split()


I1 = Annotated[Array, "i1"]
I4 = Annotated[Array, "i4"]
I8 = Annotated[Array, "i8"]


@dataclass
class Records:
    """Records as columns. `time` is in microseconds since 1970, of the clock of its node.

    A one-to-one dependency is in dep_key, dep_num and dep_node; of a one-to-many dependency
    dep_num is the place in `lists`, which holds the text once however many records share it.
    """

    id: I8
    src: I4
    dst: I4
    length: I8
    num_pp: I8
    operation: I1
    key: I4
    op_num: I4
    node: I4
    dep_type: I1
    d_time: I8
    time: I8
    dep_kind: I1
    dep_key: I4
    dep_num: I4
    dep_node: I4
    lists: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.id)

    def take(self, index: Array) -> Records:
        columns: dict[str, Any] = {name: getattr(self, name)[index] for name, _ in COLUMNS}
        return Records(**columns, lists=self.lists)

    def column(self, name: str) -> Array:
        found: Array = getattr(self, name)
        return found

    @property
    def is_data(self) -> Bools:
        """The eight operations of training, initial values included."""
        mask: Bools = self.operation < DATA_OPERATIONS
        return mask

    @staticmethod
    def empty(size: int = 0) -> Records:
        columns: dict[str, Any] = {name: np.zeros(size, dtype) for name, dtype in COLUMNS}
        return Records(**columns)

    @staticmethod
    def of(columns: Mapping[str, Sequence[int]], lists: Sequence[str] = ()) -> Records:
        arrays: dict[str, Any] = {n: np.asarray(columns[n], dtype=dtype) for n, dtype in COLUMNS}
        return Records(**arrays, lists=list(lists))


# Name and type of each, in the order of the files.
COLUMNS: tuple[tuple[str, str], ...] = tuple(
    (name, hint.__metadata__[0])
    for name, hint in get_type_hints(Records, include_extras=True).items()
    if hasattr(hint, "__metadata__")
)


@dataclass(frozen=True)
class Problem:
    """Something in a file that a tolerant reader went round. `line` 0: the file as a whole."""

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}" if self.line else f"{self.path}: {self.text}"


@dataclass
class Trace:
    """One node's file."""

    header: Header
    records: Records
    notes: list[Note] = field(default_factory=list)
    path: str = ""
    problems: list[Problem] = field(default_factory=list)
    steps: StepNumbers = field(default_factory=StepNumbers)  # of the run: its other files may tell

    @property
    def is_scheduler_traffic(self) -> bool:
        named = PurePath(self.path).name.startswith("trace_sch_")
        code = self.records.operation
        with_scheduler = (code > max(SETUP_CODES)) & (code < FIRST_PACKET)
        return named or self.header.role == "scheduler" or bool(with_scheduler.any())

    @property
    def lost(self) -> int:
        """Records that the capture had no room for, by its own count."""
        return sum(
            whole_number(n.words[1]) or 0
            for n in self.notes
            if n.words[:1] == ["lost"] and len(n.words) > 1
        )

    @property
    def complete(self) -> bool:
        """Whether the writer came to its end, rather than being killed."""
        return any(n.words[:1] == ["end"] for n in self.notes)

    @property
    def failed(self) -> bool:
        """Whether its job failed, by its own account: what was under way then has no end."""
        return any(n.words[:1] == ["failed"] for n in self.notes)

    @property
    def went_on(self) -> bool:
        """Whether its job lost nodes and went on: of what those did, records may be missing."""
        return any(n.words[:1] == ["without"] for n in self.notes)

    @property
    def leader(self) -> int | None:
        """Of a server that is the sums of a host's workers: the worker that makes them."""
        for note in self.notes:
            words = note.words
            if len(words) == 3 and words[:2] == ["leader", "worker"]:
                return whole_number(words[2])
        return None

    def covers(self, iteration: Ints) -> Bools:
        """Whether iterations were to be recorded, by the notes `from step` and `to step`.

        Iteration -1, what is before training, goes with the first.
        """
        at = np.maximum(iteration, 0)
        covered = np.zeros(len(at), np.bool_)
        begin, end, told = 0, int(np.iinfo(np.int64).max), False
        for note in self.notes:
            words = note.words
            step = whole_number(words[2]) if len(words) == 3 and words[1] == "step" else None
            if step is None:
                continue
            if words[0] == "from":
                if told:
                    covered |= (at >= begin) & (at < end)
                begin, end, told = step, int(np.iinfo(np.int64).max), True
            elif words[0] == "to":
                end, told = step, True
        return covered | ((at >= begin) & (at < end))

    def ends(self, rows: Ints) -> tuple[Ints, Ints]:
        """The ranks of the worker and of the server of training records."""
        peer = (self.records.node[rows] // len(ROLES)).astype(np.int64)
        own = np.full(len(rows), self.header.rank, np.int64)
        return (own, peer) if self.header.role == "worker" else (peer, own)

    def iteration(self) -> Ints:
        """The training iteration of each record; -1 for set-up and initial values."""
        number = self.numbers()
        return np.where(number >= 0, self.steps.step(self.records.key, number), -1)

    def numbers(self) -> Ints:
        """The same, counted for each key by itself."""
        r = self.records
        number = (r.op_num.astype(np.int64) - self._first_numbers()) // STAGES
        return np.where(r.is_data & (number >= 0), number, -1)

    def _first_numbers(self) -> Ints | int:
        """With which number training begins, for each record.

        The push that comes right after initialisation opens the first iteration, even if another
        tool gave it another number than the header's rule does. Not where records are known to be
        missing: the first that is there may be any.
        """
        r, first = self.records, self.header.first_op
        if self.lost or any(note.words[1:2] == ["step"] for note in self.notes):
            return first
        stage = r.operation % STAGES
        initial = r.is_data & ((r.num_pp == INITIAL_NUM_PP) | ((stage > 1) & (r.op_num < first)))
        trained = r.is_data & ~initial
        place = r.key.astype(np.int64) << 32 | r.node
        odd = np.setdiff1d(place[initial], place[trained & (r.op_num == first)])
        if not len(odd):
            return first
        rows = np.flatnonzero(trained & np.isin(place, odd))
        order = np.lexsort((r.op_num[rows], place[rows]))
        places, at = np.unique(place[rows][order], return_index=True)
        begins = rows[order][at]
        opens = stage[begins] == 0
        places, begins = places[opens], begins[opens]
        found = np.full(len(r), first, np.int64)
        if len(places):
            known = np.minimum(np.searchsorted(places, place), len(places) - 1)
            own = places[known] == place
            found[own] = r.op_num[begins[known[own]]]
        return found


def same(one: Trace, other: Trace) -> bool:
    """Whether two traces say the same, wherever they were read from."""
    if one.header != other.header or one.notes != other.notes:
        return False
    mine, others = one.records, other.records
    if len(mine) != len(others):
        return False
    listed = mine.dep_kind == DEP_LIST
    for name, _ in COLUMNS:
        a, b = mine.column(name), others.column(name)
        if name == "dep_num":
            a, b = a[~listed], b[~listed]
        if not np.array_equal(a, b):
            return False
    return [mine.lists[i] for i in mine.dep_num[listed]] == [
        others.lists[i] for i in others.dep_num[listed]
    ]
