"""Sums of any size over all workers, in a number of the core's tensors that has a limit.

The core knows a tensor by its key for as long as the job lasts. So memory is cut into pieces whose
sizes are powers of two; tensors of a size take turns, the same ones on all workers, which
start the same collectives in the same order. A word about what a collective is goes along with it:
workers that do not agree hear of it.
"""

from __future__ import annotations

import itertools
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from pslite_ext import _core
from pslite_ext.errors import InvalidArgumentError, WaitTimeoutError
from pslite_ext.job.wire import codec_for
from pslite_ext.torch import callbacks, staging, this_worker
from pslite_ext.torch.values import wire_key
from pslite_ext.torch.words import NUMBERS, words_of
from pslite_ext.wire_words import PLAIN

PIECE_BYTES_MAX = 4 << 20
PIECE_BYTES_MIN = 1 << 10  # what is left is filled up
# As many of a size are under way at once; who starts more waits for the first of them.
TURNS_MIN, TURNS_MAX = 16, 64
TURN_BYTES = 16 << 20  # of all tensors of a size, between the two
WORD_PRIORITY = 1 << 20
LOOK_S = 0.5  # how often one who waits asks whether the job has failed
_SUMMED = {
    torch.float32: "float32",
    torch.float64: "float64",
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
    torch.uint8: "uint8",
    torch.int8: "int8",
    torch.int32: "int32",
    torch.int64: "int64",
}


def can_sum(dtype: Any) -> bool:
    return dtype in _SUMMED


def cut(size: int) -> Iterator[int]:
    """Powers of two, the largest first; the last may reach beyond the end."""
    piece = PIECE_BYTES_MAX
    while size > 0:
        while piece > size and piece > PIECE_BYTES_MIN:
            piece //= 2
        yield piece
        size -= piece


class Turn:
    """One of the core's tensors, and what it carries."""

    def __init__(self, dtype: Any, codec: str, size: int, number: int, depth: int) -> None:
        name = f"{size} bytes of {_SUMMED[dtype]}, {number}"
        name += f", sent as {codec}" if codec != "none" else ""
        name += f", of callbacks {depth} deep" if depth else ""
        length = size // dtype.itemsize
        self.tensor = _core.Tensor(wire_key(-1, "piece", name), name, _SUMMED[dtype], [length])
        self.tensor.set_compression(codec, 0.5)
        self.work: staging.SumWork | None = None

    def sum(self, sender: staging.Sender, part: Any, priority: int) -> staging.SumWork:
        before = self.work
        if before is not None:
            before.wait()
        self.work = sender.sum(self.tensor, part, priority)
        return self.work

    def forget(self, work: staging.SumWork) -> None:
        """It is over; it keeps memory of others."""
        if self.work is work:
            self.work = None


class Collective:
    """One collective: over when all its sums are in and `finish` has put them where they belong."""

    def __init__(self, what: str, finish: Callable[[], None], tensors: Sequence[Any]) -> None:
        """`tensors`: all that are written to."""
        self.what = what
        self.finish = finish
        self.devices = staging.Devices(tensors)
        # Only in that mode may tensors that were made in it be written to.
        self.inference = torch.is_inference_mode_enabled()
        self.inference |= any(tensor.is_inference() for tensor in tensors)
        self.sums: list[tuple[Turn, staging.SumWork]] = []
        self.filled: list[tuple[Any, Any]] = []  # what was filled up, and where its begin belongs
        self.words: Any = None
        self.error: BaseException | None = None
        self.over = threading.Event()

    def end(self, workers: int) -> None:
        """Waits for the sums, that of the words first."""
        with torch.inference_mode(self.inference), torch.no_grad(), self.devices.apart():
            self._end(workers)
        for turn, work in self.sums:
            turn.forget(work)

    def _end(self, workers: int) -> None:
        for _, work in self.sums[:1]:
            work.wait()
        if self.words.tolist()[:NUMBERS] != [workers * word for word in words_of(self.what)]:
            raise InvalidArgumentError(
                f"worker {_core.rank()} calls {self.what}, but not all workers call the same: each "
                "must start the same collectives in the same order"
            )
        for _, work in self.sums[1:]:
            work.wait()
        for part, place in self.filled:
            place.copy_(part[: place.numel()])
        self.finish()

    def wait(self, timeout_s: float | None = None) -> None:
        until = time.monotonic() + (threading.TIMEOUT_MAX if timeout_s is None else timeout_s)
        while not self.over.wait(min(LOOK_S, max(0.0, until - time.monotonic()))):
            _core.check()  # what travels over Gloo does not hear of it
            if time.monotonic() >= until:
                raise WaitTimeoutError(
                    f"{self.what} is not over within its timeout of {timeout_s:g} s: not all "
                    "workers have called it"
                )
        if self.error is not None:
            raise self.error

    def result(self, value: Any) -> callbacks.Future:
        """A future of `value`, when it is over."""

        def produce() -> Any:
            self.wait()
            return value

        return callbacks.Future(produce, self.devices)


_failure: BaseException | None = None  # the first, of any depth: no more can be started


class Collectives:
    """This process's, at one depth of callbacks, whose order is apart from that of all others.

    Any thread may start them, as long as all workers have the same order.
    """

    def __init__(self, depth: int) -> None:
        self.workers = this_worker.join()
        self._depth = depth
        self._turns: dict[tuple[Any, str, int], Iterator[Turn]] = {}
        self._senders: dict[Any, staging.Sender] = {}  # by device
        self._started: queue.SimpleQueue[Collective | None] = queue.SimpleQueue()
        self._lock = threading.Lock()  # guards the order, and the turns
        name = f"mercury-torch-{depth}"
        self._thread = threading.Thread(target=self._end_all, daemon=True, name=name)
        self._thread.start()
        this_worker.at_end(self._close)

    def sum(
        self,
        what: str,
        flats: Sequence[Any],
        finish: Callable[[], None] = lambda: None,
        priority: int = 0,
        results: Sequence[Any] = (),
        words: Sequence[str] = (),
    ) -> Collective:
        """The sums over all workers take the place of `flats`, contiguous and of one dimension;
        `finish` may write to `results`. `words`: as what each travels, if it is float32."""
        words = words or [PLAIN] * len(flats)
        sizes = ", ".join(
            f"{flat.numel()} {_SUMMED[flat.dtype]}" + (f" sent as {word}" if word != PLAIN else "")
            for flat, word in zip(flats, words)
        )
        what = f"{what} of {sizes}" if flats else what
        collective = Collective(what, finish, (*flats, *results))
        with self._lock:
            if _failure is not None:
                raise _failure
            numbers = words_of(collective.what)
            numbers += [0] * (PIECE_BYTES_MIN // 4 - NUMBERS)
            collective.words = torch.tensor(numbers, dtype=torch.int32, device="cpu")
            collective.sums.append(self._send(collective.words, WORD_PRIORITY, PLAIN))
            for flat, word in zip(flats, words):
                self._send_all(collective, flat, priority, word)
            self._started.put(collective)
        return collective

    def _send_all(self, collective: Collective, flat: Any, priority: int, word: str) -> None:
        item = flat.element_size()
        begin = 0
        for size in cut(flat.numel() * item):
            part = flat[begin : begin + size // item]
            if part.numel() < size // item:
                filled = torch.zeros(size // item, dtype=flat.dtype, device=flat.device)
                filled[: part.numel()] = part
                collective.filled.append((filled, part))
                part = filled
            collective.sums.append(self._send(part, priority, word))
            begin += size // item

    def _send(self, part: Any, priority: int, word: str) -> tuple[Turn, staging.SumWork]:
        dtype, size = part.dtype, part.numel() * part.element_size()
        # It is a part of many gradients: what each would be alone is not known here.
        codec = codec_for(word, _SUMMED[dtype], [1, part.numel()])
        if (dtype, codec, size) not in self._turns:
            self._turns[dtype, codec, size] = _in_turns(dtype, codec, size, self._depth)
        if part.device not in self._senders:
            self._senders[part.device] = staging.sender_from(part.device)
        turn = next(self._turns[dtype, codec, size])
        return turn, turn.sum(self._senders[part.device], part, priority)

    def _end_all(self) -> None:
        global _failure
        while (collective := self._started.get()) is not None:
            try:
                if _failure is not None:
                    raise _failure
                collective.end(self.workers)
            except Exception as error:
                _failure = collective.error = error
            collective.over.set()

    def _close(self) -> None:
        self._started.put(None)
        self._thread.join()


def _in_turns(dtype: Any, codec: str, size: int, depth: int) -> Iterator[Turn]:
    made: list[Turn] = []
    count = max(TURNS_MIN, min(TURNS_MAX, TURN_BYTES // size))
    for number in itertools.cycle(range(count)):
        if number == len(made):
            made.append(Turn(dtype, codec, size, number, depth))
        yield made[number]


_lock = threading.Lock()
_collectives: dict[int, Collectives] = {}


def collectives() -> Collectives:
    """Those of the depth that this thread is at."""
    depth = callbacks.depth()
    with _lock:
        if depth not in _collectives:
            _collectives[depth] = Collectives(depth)
        return _collectives[depth]
