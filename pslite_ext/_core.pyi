"""The native core: this process as one node of one job.

Arrays are given as MXNet `NDArrayHandle` values (`ndarray.handle.value`). Errors are raised as
`pslite_ext.errors.PsliteError` and its subclasses, by `pslite_ext.errors.raise_status` alone.
Every call that waits releases the GIL and answers Ctrl-C.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from pslite_ext.errors import Failure, PsliteError

def start(options: Mapping[str, int | str], look: Callable[[], None] | None = None) -> None:
    """Joins the job; returns when all nodes have registered. `options`: Settings.options().

    While they have not, `look` is called now and then; what it raises ends the start.
    """

def serve() -> None:
    """Server and scheduler: returns when the job has ended, raises when it has failed."""

def word_failures_as(text: str) -> None:
    """For tests: the core tells all failures in these words, so that nothing can depend on them."""

def finish(reason: str = "", error: BaseException | None = None) -> None:
    """Leave the job. A non-empty `reason` fails it for everybody. Safe to call twice.

    `error`: what has led to that, if it is known.
    """

def other_ended(is_worker: bool, rank_hint: int, how: str, failed: bool) -> bool:
    """The scheduler is told that another process has ended; False: it does not listen yet.

    `failed`: that fails the job. Otherwise it does if somebody waits for it to join.
    """

def awaits_late() -> bool:
    """Whether this scheduler's start has failed and some may still come who do not know."""

def finish_at_exit(code: int = 0, over_chosen: bool = False) -> None:
    """Leave the job once the process ends: any exit code but 0 fails it for everybody.

    `code` above 0 becomes the exit code, if that says nothing in particular (0 or 1) or
    `over_chosen`.
    """

def say_at_exit(line: str) -> None:
    """On standard error once the process ends, if its exit code is 0."""

def park_ended_threads() -> None:
    """As Python ends: a thread that it ends inside C++ stands still, and nothing is aborted."""

def rank() -> int: ...
def local_rank() -> tuple[int, int]:
    """This worker's number among those of its host, and how many there are."""

def workers() -> int:
    """How many workers the job has now; 0: it has not begun."""

def elastic() -> bool:
    """Whether it goes on without workers that it loses."""

def places() -> int:
    """For how many workers the job has places, those for workers that may still come with them."""

def outside() -> tuple[int, int] | None:
    """Of workers that come while the job runs, by rank, and by how many have had that before: this
    one, if it has come so, and has not been let in."""

def came_late() -> bool:
    """Whether it is or was one."""

def next_to_let_in() -> tuple[int, int] | None:
    """Whom this worker is to let in: of the first worker, if one is ready."""

def say_admission(newcomer: tuple[int, int], admission: str) -> None:
    """It is that far: "ready" or "has", says it itself; "takes" or "in", who lets it in."""

def wait_admission(newcomer: tuple[int, int], admission: str, within_s: float = ...) -> bool:
    """Until all know that it is that far, or the time is over (False); a PeerLostError if it is
    gone."""

def do_without(newcomer: tuple[int, int], why: str) -> None:
    """The job goes on without it."""

def standing() -> str:
    """Where this worker stands with its tensors, for one that is let in; nothing is under way."""

def enter(standing: str) -> None:
    """Of that one: it is in, and stands there."""

def let_in(newcomer: tuple[int, int]) -> None:
    """All servers expect it from their next sums on."""

def release(keys: Sequence[int]) -> None:
    """All servers may forget the values of the tensors of these keys."""

def check() -> None:
    """Raises the job's first error, if it has failed."""

def failed() -> bool:
    """Whether the job that this process is in has failed (and the core has logged why)."""

def failed_elsewhere() -> bool:
    """Whether it has failed, for what another node did."""

def barrier() -> None:
    """Waits until all workers are here."""

def command(head: int, body: bytes) -> None:
    """Worker: sends a command to all servers and waits until each has taken it."""

def num_dead_nodes(group: int) -> int:
    """Lost nodes of a ps-lite node group (1 scheduler, 2 servers, 4 workers, or their sum)."""

def attach_engine(libmxnet: int) -> None:
    """`mxnet.base._LIB._handle`: the engine functions are looked up in that library."""

def same_variable(a: int, b: int) -> bool:
    """Whether two NDArrays are views of one: no operation may read one and write the other."""

def engine_failures() -> list[tuple[Failure, str]]:
    """What the engine's operations have failed of, each failure once."""

def engine_failure(index: int) -> PsliteError | None:
    """One of these."""

def announce(tensors: Sequence[tuple[int, str, int]]) -> None:
    """(key, name, priority) of tensors to come; names them in errors, traces, reports."""

def sum_instruction_set() -> str: ...
def compressions() -> list[str]:
    """How gradients may be compressed."""

def element_bytes(dtype: str) -> int:
    """Of a type that can be summed; of any other, 0."""

def wires() -> list[str]:
    """What MERCURY_WIRE may be."""

def wire() -> str:
    """What it is in this process's job, once that has begun."""

def policies() -> list[str]:
    """What MERCURY_POLICY may be."""

def figures() -> str:
    """The data plane's live figures, a JSON object; `{}` without one. `mxnet_plugins.stats()`."""

def waiting() -> str:
    """What this worker waits for, and who is in the job: a line for each."""

def dump_to(fd: int) -> None:
    """When a stall ends the job, a byte is written to `fd`, and `dumped` is waited for a moment."""

def dumped() -> None: ...
def claim_model(subject: int, keys: Iterable[tuple[str, str]]) -> None:
    """Says which keys, with names, this worker's model has, and waits for the others to say so.

    `subject`: 64 bits that no key has. Raises InvalidArgumentError if workers' models differ."""

def claim_steps(subject: int, told: str) -> None:
    """Says what this worker's optimizer has been told so far, and waits for the others to say so.

    `subject`: 64 bits, others each time. Raises InvalidArgumentError if workers' differ."""

def trace_switch(on: bool) -> None:
    """This node's trace and the servers' record from the next iteration on, or no more."""

def prophet_profile() -> str:
    """What this worker has learnt of its job, for MERCURY_PROPHET_PROFILE; "" if nothing."""

def prophet_plan(produced: Sequence[float], wire: Sequence[float], startup: float) -> list[float]:
    """When Prophet's Algorithm 1 starts each gradient, the most urgent first; any unit of time."""

def fabric_plan(batch: bytes, search: bool = False, in_words: bool = False) -> str:
    """MLfabric's plan of a batch, as JSON or in words: docs/fabric-plan.md.

    Raises InvalidArgumentError, which names the field, if the batch breaks the format's rules."""

def fabric_tree(batch: bytes) -> str:
    """How one version of the model gets to the workers of a batch with one server, in words.

    Raises InvalidArgumentError as `fabric_plan` does, and if there are several servers."""

def fabric_limits(update_bytes: int) -> dict[str, float]:
    """How far a transfer of MLfabric's may be ahead of its plan, and when models go by trees."""

# Memory that no engine orders: what keeps it where it is, its address, its bytes.
Memory = tuple[object, int, int]

class Chunks:
    """Of sums under way: which chunks of which are in."""

    def pop(self) -> tuple[int, int | None] | None:
        """The sum's number, and the chunk's; None instead of a chunk: the sum is over, well or not.

        Waits for a moment; None: nothing has come.
        """

class Work:
    """An operation on plain memory, which was submitted at once. It may be dropped at any time.

    The memory belongs to it until it is over, and is kept until nobody uses it any more.
    """

    def ready(self, size: int) -> None:
        """Of a sum in chunks: so many bytes, from the first on, may be read now."""

    @property
    def over(self) -> bool:
        """Does not wait; raises what it failed of."""

    @property
    def released(self) -> bool:
        """Nobody reads or writes the memory any more."""

    def wait(self) -> None:
        """Until it is over; raises what it failed of."""

class Tensor:
    """One key of one KVStore, as all nodes know it.

    `key`: 64-bit, the same on all workers and unlike any other key of the job. `asynchronous`: a
    push is added to the server's value at once; otherwise the value becomes the sum of one push by
    each worker. `parameter`: the announced key of which this is one more tensor, so that traces
    show the two as one. `token` orders the operations of a tensor: an NDArray that each of them
    mutates. `init`, `push`, `pull` and `pushpull` queue an engine operation and return at once.
    What takes a `Memory` needs no MXNet: it is submitted at once, one at a time for each tensor.
    """

    def __init__(
        self,
        key: int,
        name: str,
        dtype: str,
        shape: Sequence[int],
        asynchronous: bool = False,
        parameter: int | None = None,
        label: str = "",
    ) -> None: ...
    def set_compression(self, kind: str, threshold: float) -> None:
        """'none', '1bit' or '2bit' for all later pushes of this (float32) tensor."""

    def set_use(self, use: str) -> None:
        """What later sums of it are for, such as an optimizer: all workers must say the same."""

    def check(self) -> None:
        """Raises what workers disagree on about this tensor, once that is known."""

    @property
    def agreed(self) -> bool:
        """All workers are known to have this tensor, with the same shape and type."""

    def workers(self, sum_: int = 0) -> int:
        """Of how many workers its sum number `sum_` was, from 1; 0: the last one that is in. Waits
        for it."""

    def init(self, src: int, token: int, priority: int = 0) -> None:
        """Worker 0 sets the initial value; pulls of the others wait for it."""

    def push(self, src: int, token: int, priority: int = 0) -> None: ...
    def pull(self, out: int, token: int, priority: int = 0) -> None: ...
    def pushpull(self, src: int, out: int, token: int, priority: int = 0) -> None:
        """Pushes `src`, then pulls the sum into `out`; the two may be the same array."""

    def sum_memory(self, memory: Memory, priority: int = 0) -> Work:
        """The sum over all workers takes the place of what is in `memory`."""

    def sum_chunks(
        self, memory: Memory, chunks: Chunks, size: int, number: int, priority: int = 0
    ) -> Work:
        """As sum_memory, in chunks of `size` bytes: nothing is read before the work is told that it
        is ready, and what comes back is in `chunks` under this number. Whoever drops the work must
        have said that all is ready."""

    def first_value(self, memory: Memory) -> Work:
        """Worker 0: what is in `memory` is what the others pull, before anything is summed."""

    def pull_memory(self, memory: Memory, priority: int = 0) -> Work:
        """The value on the servers, once it is there, into `memory`."""

    def push_rows(self, rows: bytes, values: bytes, row_size: int) -> int:
        """Row-sparse push: int64 rows, ascending, unique; `row_size` elements a row.

        Does not wait: returns a ticket."""

    def wait_rows(self, ticket: int) -> tuple[bytes, bytes]:
        """Waits for the sum of the round that `ticket` pushed into: its rows and values."""

class Fabric:
    """This process as a node of an MLfabric job (pslite_ext/fabric). Memory is float32."""

    def __init__(self, options: Mapping[str, object], model: object, elements: int) -> None:
        """On its way into the job. `model`: the first values, of a server or its replica.

        `options["calls"]` is Calls of pslite_ext/fabric/calls.py."""

    def wait(self, what: int) -> bool:
        """For a moment: for the job's beginning (0), its end (1), or all pushes' fates (2)."""

    def push(self, update: object, norm: float) -> int:
        """Copied; the update's number."""

    def fate(self, number: int) -> str:
        """What became of an update; "": it is not known."""

    def reduce(self, part: object, out: object) -> None:
        """The sum of all workers' parts, into `out`."""

    def get(self, out: object) -> int:
        """The model, into `out`; its version."""

    def model(self, out: object) -> int:
        """A server's or replica's, into `out`; its version."""

    def feed(self, line: bytes) -> None:
        """A line of an operator's feed, to the scheduler."""

    def records(self) -> str:
        """The scheduler's: lines of JSON that nobody has taken yet."""

    def stats(self) -> str:
        """JSON."""

    def failed_elsewhere(self) -> bool:
        """Whether the job has failed for what another node did or suffered."""

    def leave(self, failed: bool) -> None: ...
