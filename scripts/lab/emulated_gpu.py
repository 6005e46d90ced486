"""A GPU that only takes time: asynchronous operations of MXNet's engine, one after the other.

Everything around them is real: the engine's dependencies, the KVStore, the transport. No core is
used while an operation "computes".

A computation begins when the one before it has ended, its arrays are ready and it has been
queued: whichever came last. It ends its nominal time after *that*, not after the moment in which
the engine got round to it; so the delays of threads do not add up over a model's layers, and what
is waited for (a sum from the network) is counted to the microsecond. When arrays became ready is
noted by an operation of its own that reads nothing else.
"""

from __future__ import annotations

import queue
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Optional

import mxnet as mx
from engine import Complete, Engine

Note = Optional[Callable[[float], None]]


class _Computation:
    """Queued, then possible (its arrays are ready), then begun by the engine, then ended."""

    def __init__(self, seconds: float, at_start: Note, at_end: Note) -> None:
        self.seconds = seconds
        self.at_start = at_start
        self.at_end = at_end
        self.possible = time.monotonic()
        self.settled = True  # whether `possible` is known
        self.complete: Complete | None = None

    def ready(self, complete: Complete) -> None:
        self.settle(time.monotonic())
        complete()

    def settle(self, now: float) -> None:
        if not self.settled:
            self.possible = now
            self.settled = True


class EmulatedGpu:
    """Arrays handed over must live until `close`."""

    def __init__(self, engine: Engine) -> None:
        sys.setswitchinterval(0.0005)  # of Python's threads; 5 ms would show in short layers
        self._engine = engine
        self._stream = mx.nd.zeros((1,))
        self._stream.wait_to_read()
        self._ended_at = 0.0  # when the last computation was due to end
        self._due: queue.SimpleQueue[_Computation | None] = queue.SimpleQueue()
        self._timer = threading.Thread(target=self._run, name="emulated-gpu", daemon=True)
        self._timer.start()

    def compute(
        self,
        seconds: float,
        reads: Sequence[Any] = (),
        writes: Sequence[Any] = (),
        *,
        at_start: Note = None,
        at_end: Note = None,
    ) -> None:
        """Queues a computation; returns at once.

        `at_start` and `at_end` are called with the time on the clock when it could begin and when
        it ended, inside the operation: its arrays may be touched in them.
        """
        computation = _Computation(seconds, at_start, at_end)
        if reads:
            computation.settled = False
            self._engine.push(computation.ready, reads, (), "ready")

        def begin(complete: Complete) -> None:
            computation.complete = complete
            self._begin(computation)

        self._engine.push(begin, reads, (*writes, self._stream), "compute")

    def wait(self) -> None:
        """Until all that was queued has ended."""
        self._stream.wait_to_read()

    def close(self) -> None:
        self.wait()
        mx.nd.waitall()  # the operations that only note, too
        self._due.put(None)
        self._timer.join()

    def _begin(self, computation: _Computation) -> None:
        now = time.monotonic()
        computation.settle(now)
        # The stream lets one computation through at a time, so nobody else writes this now.
        start = max(self._ended_at, computation.possible)
        if computation.at_start:
            computation.at_start(start)
        self._ended_at = start + computation.seconds
        if self._ended_at <= now:
            self._end(computation)
        else:
            self._due.put(computation)

    def _end(self, computation: _Computation) -> None:
        if computation.at_end:
            computation.at_end(time.monotonic())
        assert computation.complete is not None
        computation.complete()

    def _run(self) -> None:
        while (computation := self._due.get()) is not None:
            left = self._ended_at - time.monotonic()
            if left > 0:
                time.sleep(left)
            self._end(computation)
