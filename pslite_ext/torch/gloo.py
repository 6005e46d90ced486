"""Gloo, for what sums over all workers cannot do: groups of some workers, messages between two.

Its waits know nothing of our job, so whoever waits here looks after both.
"""

from __future__ import annotations

import atexit
import threading
import time
import weakref
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from pslite_ext import _core
from pslite_ext.errors import PeerLostError, WaitTimeoutError
from pslite_ext.job import joining
from pslite_ext.torch import this_worker
from pslite_ext.torch.collectives import LOOK_S

# A worker's end is often seen here first: until then, the job may say who it was.
HEARD_WITHIN_S = 2.0
HEARD_EVERY_S = 0.02

_in_gloo: weakref.WeakSet[threading.Thread] = weakref.WeakSet()


@atexit.register
def _leave_those_who_wait() -> None:
    """Nothing ends a wait of Gloo's: one that was given up may end while Python does."""
    if any(thread.is_alive() for thread in _in_gloo):
        _core.park_ended_threads()


def connect(store: Any, rank: int, size: int, timeout: timedelta) -> Any:
    """Returns when all members have come. In a job, over the addresses that it uses."""
    options = dist.ProcessGroupGloo._Options()
    settings = joining.joined
    if settings is None:
        options._devices = [dist.ProcessGroupGloo.create_default_device()]
        options._timeout = timeout
    else:
        options._devices = [dist.ProcessGroupGloo.create_device(hostname=settings.host)]
        options._timeout = timedelta(seconds=int(settings.values["MERCURY_START_TIMEOUT_S"]))
    try:
        group = dist.ProcessGroupGloo(store, rank, size, options)
    except RuntimeError as error:
        raise WaitTimeoutError(
            f"the backend 'mercury': rank {rank} of {size} was not connected to all others by "
            f"Gloo, which carries what sums cannot: {error}"
        ) from None
    group._set_default_timeout(timeout)
    return group


def _check_job() -> None:
    if joining.joined is not None:  # or this process has none, and Gloo's group all the same
        _core.check()


def ended(what: str, wait: Callable[[], object], patience: timedelta, began_s: float) -> None:
    """Waits by `wait`; says what the job failed of, if that is why Gloo fails.

    Gloo was given `patience` when it began; of its errors, only the time tells one that is late.
    """
    try:
        wait()
    except RuntimeError as error:
        now_s = time.monotonic()
        late = now_s - began_s >= patience.total_seconds()
        while not late and time.monotonic() < now_s + HEARD_WITHIN_S:
            _check_job()
            time.sleep(HEARD_EVERY_S)
        kind = WaitTimeoutError if late else PeerLostError
        raise kind(f"{what}, over Gloo: {error}") from None


class GlooWork(dist._Work):  # type: ignore[misc]
    """One or several of Gloo's, under way."""

    def __init__(self, what: str, result: Any, patience: timedelta, *works: Any) -> None:
        super().__init__()
        this_worker.shares()
        self._what, self._works, self._result = what, works, result
        self._patience, self._began_s = patience, time.monotonic()
        self._waiting: threading.Thread | None = None
        self._error: BaseException | None = None

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        if self._waiting is None:  # a thread, since Gloo's wait can neither be looked at nor ended
            self._waiting = threading.Thread(target=self._wait, args=(timeout,), daemon=True)
            self._waiting.start()
            _in_gloo.add(self._waiting)
        self._waiting.join(LOOK_S)
        while self._waiting.is_alive():
            _check_job()
            self._waiting.join(LOOK_S)
        if self._error is not None:
            raise self._error
        return True

    def synchronize(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        if self._waiting is None:
            return all(work.is_completed() for work in self._works)
        return not self._waiting.is_alive()

    def is_success(self) -> bool:
        return self.is_completed() and self._error is None

    def exception(self) -> BaseException | None:
        return self._error

    def result(self) -> Any:
        return self._result

    def get_future(self) -> Any:
        futures = [work.get_future() for work in self._works]
        return futures[0] if len(futures) == 1 else torch.futures.collect_all(futures)

    def source_rank(self) -> int:
        return int(self._works[0]._source_rank())

    _source_rank = source_rank

    def _wait(self, timeout: timedelta) -> None:
        def wait() -> None:
            for work in self._works:
                work.wait(timeout) if timeout else work.wait()

        try:
            ended(self._what, wait, timeout or self._patience, self._began_s)
        except Exception as error:
            self._error = error


class GroupOfSome(dist.ProcessGroup):  # type: ignore[misc]
    """Gloo's. All that it begins is begun from here: where torch's own code does that, it may hold
    Python's lock, for which a thread of Gloo's waits while it holds the lock that is needed."""

    def __init__(self, asked: Any) -> None:
        super().__init__(asked.group_rank, asked.group_size)
        self._patience = asked.timeout
        self._gloo = connect(asked.store, asked.group_rank, asked.group_size, asked.timeout)
        self._gloo.options.global_ranks_in_group = list(asked.global_ranks_in_group)
        self._gloo.options.group_name = asked.group_id
        self._gloo._set_sequence_number_for_group()
        self._register_backend(torch.device("cpu"), self.BackendType.CUSTOM, self._gloo)
        self._name = str(asked.group_id)

    def getBackendName(self) -> str:
        return "mercury"

    @property
    def group_name(self) -> str:
        return self._name

    def shutdown(self) -> None:
        """It ends when nobody has it any more."""

    def allgather_into_tensor_coalesced(
        self, outputs: Any, inputs: Any, opts: Any = None
    ) -> GlooWork:
        parts = [output.chunk(self.size()) for output in outputs]
        places = [list(each) for each in zip(*parts)]  # a list for each member
        work = self._gloo.allgather_coalesced(places, inputs, opts or dist.AllgatherOptions())
        return GlooWork("allgather", outputs, self._patience, work)

    def reduce_scatter_tensor_coalesced(
        self, outputs: Any, inputs: Any, opts: Any = None
    ) -> GlooWork:
        opts = opts or dist.ReduceScatterOptions()
        pairs = zip(outputs, inputs)
        works = [self._gloo._reduce_scatter_base(output, given, opts) for output, given in pairs]
        return GlooWork("reduce_scatter", outputs, self._patience, *works)

    def _start_coalescing(self, _device: Any) -> None:
        """Each is as fast alone."""

    def _end_coalescing(self, _device: Any) -> None:
        """They have been started."""

    # So newer versions of torch call them.
    all_gather_single_coalesced = allgather_into_tensor_coalesced
    reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced


def _of_gloo(name: str) -> Callable[..., GlooWork]:
    def call(self: GroupOfSome, *given: Any, **options: Any) -> GlooWork:
        work = getattr(self._gloo, name)(*given, **options)
        return GlooWork(name, given[0] if given else None, self._patience, work)

    return call


# And what newer versions of torch call some of them.
for _theirs, _name in (
    *((name, name) for name in ("allreduce", "allreduce_coalesced", "reduce", "broadcast")),
    *((name, name) for name in ("allgather", "allgather_coalesced", "_allgather_base")),
    *((name, name) for name in ("reduce_scatter", "_reduce_scatter_base", "gather", "scatter")),
    *((name, name) for name in ("alltoall", "alltoall_base", "barrier")),
    *((name, name) for name in ("send", "recv", "recv_anysource")),
    ("all_gather_single", "_allgather_base"),
    ("reduce_scatter_single", "_reduce_scatter_base"),
    ("all_to_all_single", "alltoall_base"),
):
    setattr(GroupOfSome, _theirs, _of_gloo(_name))
