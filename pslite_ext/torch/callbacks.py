"""Futures of collectives; their callbacks may wait for other collectives, to any depth.

What callbacks start must have the same order on all workers, however late each of them is. So the
callbacks that code at one depth asks for are run one after the other, in the order of asking, on a
thread of theirs; what they start is ordered apart from what is started at other depths.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import torch

from pslite_ext.torch import this_worker

_here = threading.local()
_lock = threading.Lock()
_callbacks: dict[int, Callbacks] = {}


def depth() -> int:
    """0, or how deep in callbacks of callbacks this thread is."""
    return getattr(_here, "depth", 0)


class Failed:
    """A result that is an error: torch's C++ code, which takes it for a tensor, fails of its text.

    A future that Python makes can tell C++ of errors in no other way.
    """

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __reduce_ex__(self, _protocol: object) -> Any:  # C++ looks for tensors by pickling
        raise self.error

    def __str__(self) -> str:
        return str(self.error)


def _unwrap(result: Any) -> None:
    if isinstance(result, Failed):
        raise result.error


class Future(torch.futures.Future):  # type: ignore[misc]
    """Completed by a thread that may be kept waiting. Callbacks never run in the asking thread."""

    def __init__(self, produce: Callable[[], Any], devices: Iterable[Any] = ()) -> None:
        """`devices`: that its value may be on, beside the host."""
        self._devices = list(devices)
        super().__init__(devices=self._devices)
        self._set_unwrap_func(_unwrap)
        self._produce: Callable[[], Any] | None = produce
        self._by = _at(depth() + 1)
        self._by.ask(self)

    def complete(self) -> None:
        assert self._produce is not None
        try:
            result = self._produce()
        except BaseException as error:
            result = Failed(error)
        self._produce = None  # it keeps tensors
        self.set_result(result)

    def wait(self) -> Any:
        if getattr(_here, "by", None) is self._by:
            self._by.run_until(self)  # nobody else will
        return super().wait()

    def then(self, callback: Callable[[Any], Any]) -> Future:
        def produce() -> Any:
            with suppress(BaseException):  # which the callback will see
                self.wait()
            return callback(self)

        return Future(produce, self._devices)

    def add_done_callback(self, callback: Callable[[Any], Any]) -> None:
        self.then(callback)


class Callbacks:
    """Those that were asked for at the depth above."""

    def __init__(self, number: int) -> None:
        self._depth = number
        self._asked: queue.SimpleQueue[Future | None] = queue.SimpleQueue()
        name = f"mercury-then-{number}"
        self._thread = threading.Thread(target=self._run, daemon=True, name=name)
        self._thread.start()
        this_worker.at_end(self._close)

    def ask(self, future: Future) -> None:
        self._asked.put(future)

    def run_until(self, last: Future) -> None:
        """In this thread, whose callback waits for one that comes after it."""
        while not last.done() and (future := self._asked.get()) is not None:
            future.complete()

    def _run(self) -> None:
        _here.depth, _here.by = self._depth, self
        while (future := self._asked.get()) is not None:
            future.complete()
            del future

    def _close(self) -> None:
        self._asked.put(None)
        self._thread.join()


def _at(number: int) -> Callbacks:
    with _lock:
        if number not in _callbacks:
            _callbacks[number] = Callbacks(number)
        return _callbacks[number]
