"""A GPU that only takes time: asynchronous operations of MXNet's engine, one after the other.

Everything around them is real: the engine's dependencies, the KVStore, the transport. No core is
used while an operation "computes".

As on a GPU's stream, computations run in the order in which they were queued. One begins when the
one before it has ended, its arrays are ready and it has been queued: whichever came last. It ends
its nominal time after *that*, not after the moment in which a thread got round to it; so the
delays of threads do not add up over a model's layers, and what is waited for (a sum from the
network) is counted to the microsecond.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any, Optional

import mxnet as mx

from scripts.lab.workloads.engine import Complete, Engine

Note = Optional[Callable[[float], None]]


class _Computation:
    """Queued, then possible (its arrays are ready: the engine begins it), then run."""

    def __init__(self, seconds: float, waits: bool, at_start: Note, at_end: Note) -> None:
        self.seconds = seconds
        self.waits = waits
        self.at_start = at_start
        self.at_end = at_end
        self.possible = time.monotonic()
        self.begun = threading.Lock()
        self.begun.acquire()
        self.complete: Complete | None = None

    def begin(self, complete: Complete) -> None:
        if self.waits:
            self.possible = time.monotonic()
        self.complete = complete
        self.begun.release()


class EmulatedGpu:
    """Arrays handed over must live until `close`."""

    def __init__(self, engine: Engine) -> None:
        sys.setswitchinterval(0.0005)  # of Python's threads; 5 ms would show in short layers
        self._engine = engine
        self._stream: queue.SimpleQueue[_Computation | None] = queue.SimpleQueue()
        self._runner = threading.Thread(target=self._run, name="emulated-gpu", daemon=True)
        self._runner.start()

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
        computation = _Computation(seconds, bool(reads), at_start, at_end)
        self._stream.put(computation)
        self._engine.push(computation.begin, reads, writes, "compute")

    def wait(self) -> None:
        """Until all that was queued has ended."""
        ended = threading.Event()
        self.compute(0, at_end=lambda now: ended.set())
        ended.wait()

    def close(self) -> None:
        self._stream.put(None)
        self._runner.join()
        mx.nd.waitall()  # the operations that only note, too

    def _run(self) -> None:
        try:
            self._compute_all()
        except BaseException:  # or everybody would wait for what never ends
            traceback.print_exc()
            os._exit(1)

    def _compute_all(self) -> None:
        ended_at = 0.0  # when the last computation was due to end
        while (computation := self._stream.get()) is not None:
            computation.begun.acquire()
            start = max(ended_at, computation.possible)
            if computation.at_start:
                computation.at_start(start)
            ended_at = start + computation.seconds
            left = ended_at - time.monotonic()
            if left > 0:
                time.sleep(left)
            if computation.at_end:
                computation.at_end(time.monotonic())
            assert computation.complete is not None
            computation.complete()
