"""A device that is not there: copies to it and from it take the time of a rate, one after another
each way, and nothing of a core but what they move in fact."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable
from threading import Event, Thread
from typing import Any

import torch

from pslite_ext.torch import staging


class Way:
    """One direction: what is put in comes out in this order."""

    def __init__(self, bytes_per_s: float) -> None:
        self._rate = bytes_per_s
        self._queue: queue.SimpleQueue[tuple[Any, Any, Event]] = queue.SimpleQueue()
        self._free_at = 0.0
        Thread(target=self._run, daemon=True).start()

    def put(self, source: Any, target: Any) -> Callable[[], object]:
        done = Event()
        self._queue.put((source, target, done))
        return done.wait

    def _run(self) -> None:
        while True:
            source, target, done = self._queue.get()
            size = min(source.nbytes, target.nbytes)  # the device casts
            self._free_at = max(self._free_at, time.monotonic()) + size / self._rate
            target.copy_(source)
            time.sleep(max(0.0, self._free_at - time.monotonic()))
            done.set()


class EmulatedCopies(staging.Copies):
    def __init__(self, bytes_per_s: float) -> None:
        self._out, self._in = Way(bytes_per_s), Way(bytes_per_s)

    def host_memory(self, like: Any, dtype: Any) -> Any:
        return torch.empty_like(like, dtype=dtype)

    def begin_out(self, source: Any, host: Any) -> Callable[[], Any]:
        return self._out.put(source, host)

    def begin_in(self, host: Any, target: Any) -> Callable[[], Any]:
        return self._in.put(host, target)
