"""This process in its MLfabric job: a worker, the server, its replica or the scheduler."""

from __future__ import annotations

import json
import math
import os
import sys
import threading
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from pslite_ext import _core
from pslite_ext.config import Settings
from pslite_ext.errors import ClosedError, InvalidArgumentError, PsliteError, follows
from pslite_ext.fabric.calls import Calls, Request, Update
from pslite_ext.fabric.feed import Feed
from pslite_ext.fabric.options import (
    ALL_OF_IT,
    Planning,
    Rule,
    feed_path,
    node_options,
    with_mode,
)
from pslite_ext.fabric.recording import Recording
from pslite_ext.job import figures, spawned
from pslite_ext.job.leaving import at_exit, end_with, exit_code, remember_uncaught, uncaught
from pslite_ext.job.reason import why
from pslite_ext.job.starter import Starter
from pslite_ext.launch.scheduler_words import Ending
from pslite_ext.setting import SettingError

_BEGUN, _ENDED, _SETTLED = 0, 1, 2
_here: _Node | None = None  # a process is in one job, once


class _Node:
    def __init__(
        self,
        role: str,
        model: Any,
        rule: Rule | None = None,
        planning: Planning = ALL_OF_IT,
        mode: str = "",
        calls: Calls | None = None,
    ) -> None:
        global _here
        if _here is not None:
            raise ClosedError("this process is in an MLfabric job already, or was in one")
        settings = Settings.from_environment(os.environ)
        if mode:
            settings = with_mode(settings, mode)
        told = str(settings.values["DMLC_ROLE"])
        if told != role:
            raise InvalidArgumentError(
                f"this process is told to be a {told} (DMLC_ROLE), not a {role}"
            )
        first = None if model is None else _checked(model)
        # Who is given no model has it flat.
        self.shape: tuple[int, ...] = (-1,) if first is None else first.shape
        self._size = 0 if first is None else int(first.size)
        self.num_workers = int(settings.values["DMLC_NUM_WORKER"])
        self._left = False
        self._failure: PsliteError | None = None  # of the job, as this node has heard of it
        launched = bool(settings.values["MERCURY_LAUNCHED"])
        self._ended = ""  # who has, before the job has begun
        self._starter = Starter(launched and role == "scheduler", self._other_ended)
        calls = calls or Calls()
        calls.shape = self.shape
        options = {**node_options(settings, rule, planning), "calls": calls}
        self._feed_path = feed_path(settings) if role == "scheduler" else ""
        self._trace_folder = str(settings.values["MERCURY_TRACE_DIR"])
        recorded = ("workers", "servers", "delay_bound", "staleness", "divergence_bound")
        # Older records call it so, of jobs that had one at most; they are still read.
        self._job = {name: options[name] for name in recorded} | {"replica": options["replicas"]}
        self.rank = int(str(options["node"]))  # of a worker
        # Of the workers, only the first one may be asked for its values.
        values = None if first is None or self.rank > 0 else np.ascontiguousarray(first).ravel()
        self._core = _core.Fabric(options, values, self._size)
        _here = self
        if role == "worker":
            me = {"role": role, "rank": self.rank, "policy": "mlfabric"}
            figures.come_from(lambda: {**me, "fabric": self.stats()})
        if spawned.skips_atexit():
            spawned.at_end(self._leave_forked, why)
        else:
            at_exit(self._leave_at_exit)
        remember_uncaught()
        os.register_at_fork(after_in_child=self._forked)
        try:
            while not self._core.wait(_BEGUN):
                self._check_others()
        except BaseException as error:
            self._fail(error)
            raise

    def _fail(self, error: BaseException) -> None:
        self.leave(failed=True)
        if isinstance(error, PsliteError):
            self._failure = error
            self._starter.say(error)

    def _other_ended(self, ended: Ending) -> None:
        self._ended = self._ended or f"{ended.role} {ended.rank} {ended.how}"

    def _check_others(self) -> None:
        if self._ended:
            raise ClosedError(f"the job has not begun: {self._ended}")

    def stats(self) -> dict[str, Any]:
        """What has happened so far, as numbers by name."""
        found: dict[str, Any] = json.loads(self._core.stats())
        return found

    def leave(self, *, failed: bool = False) -> None:
        """Out of the job; nothing happens the second time."""
        if not self._left:
            self._left = True
            self._core.leave(failed)

    def exit_code(self) -> int:
        """Of this process, if it ends for what the job has failed of."""
        return exit_code(self._core.failed_elsewhere())

    def _leave_at_exit(self) -> None:
        knew = self._core.failed_elsewhere()
        self._leave_last()
        if self._failure:
            error = uncaught()
            of_it = error is None or follows(error, self._failure.failure)
            end_with(exit_code(self._core.failed_elsewhere(), of_it), knew)

    def _leave_forked(self, reason: str, _error: BaseException | None) -> None:
        """The function that multiprocessing has forked this process for is over."""
        self._leave_last()
        if self._failure and not reason:  # only now: nobody looks at what this function raises
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(self.exit_code())

    def _leave_last(self) -> None:
        self.leave(failed=True)

    def _forked(self) -> None:
        """A child is not in the job: it has none of the threads that leaving it takes."""
        self._left = True


class Worker(_Node):
    """Computes updates and pushes them; gets the model. Any thread may call."""

    def __init__(self, model: Any, rule: Rule | None = None, mode: str = "") -> None:
        self._asking = threading.Lock()  # one at a time waits for a model or a sum
        super().__init__("worker", model, rule, mode=mode)
        self.version = 0  # of the model that was got last

    def push(self, update: Any, norm: float | None = None) -> int:
        """Offers an update of the whole model, computed from what was got last; its number.

        It is copied, and on its way when the scheduler says so. `norm` is its Euclidean norm, if
        that is known already.
        """
        return self._core.push(self._flat(update), -1 if norm is None else _checked_norm(norm))

    def get(self) -> Any:
        """The model, once it is known what became of all that this worker has pushed.

        In a job that bounds staleness, also once the slowest worker is near enough.
        """
        self.settle()
        out = np.empty(self.shape, np.float32)
        with self._asking:
            self.version = self._core.get(out.reshape(-1))
        return out

    def all_reduce(self, values: Any) -> Any:
        """The sum of all workers' arrays, which have the model's shape; the model stays as it is.

        All workers call it equally often. Each gets the same bits.
        """
        part = self._flat(values)
        out = np.empty(self.shape, np.float32)
        with self._asking:
            self._core.reduce(part, out.reshape(-1))
        return out

    def _flat(self, update: Any) -> Any:
        values = _checked(update)
        if values.shape != self.shape:
            raise InvalidArgumentError(
                f"an update of shape {values.shape}, the model has {self.shape}"
            )
        return np.ascontiguousarray(values).ravel()

    def fate(self, number: int) -> str:
        """What became of an update: "committed", or why not; "" while that is not known.

        A committed one may be "lost" later, with its server. The last 4096 are remembered.
        """
        return self._core.fate(number)

    def settle(self) -> None:
        """Waits until each of this worker's updates is committed or dropped."""
        while not self._core.wait(_SETTLED):
            pass

    def leave(self, *, failed: bool = False) -> None:
        """Out of the job, once it is known what became of all that was pushed."""
        if not (failed or self._left):
            self.settle()
        super().leave(failed=failed)

    def _leave_last(self) -> None:
        try:
            self.leave()
        except PsliteError as error:
            super().leave(failed=True)
            self._failure = error
            print(f"mercury: the MLfabric job has failed: {error}", file=sys.stderr)

    def _forked(self) -> None:
        super()._forked()
        self._asking = threading.Lock()  # a thread that is not in the child may hold the other


class _Serving(_Node):
    def serve(self) -> None:
        """Until all workers have left; raises what the job has failed of."""
        try:
            while not self._core.wait(_ENDED):
                pass
        except BaseException as error:
            self._fail(error)
            raise
        self.leave()


class Holder(_Serving):
    """Has the model: the server, or its replica."""

    def model(self) -> tuple[Any, int]:
        """As it is now, with its version."""
        out = np.empty(self._size or self.stats()["elements"], np.float32)
        version = self._core.model(out)
        return out.reshape(self.shape), version


class Scheduler(_Serving):
    """Plans who sends what when."""

    _feed: Feed | None = None
    _recording: Recording | None = None

    def __init__(self, planning: Planning = ALL_OF_IT) -> None:
        super().__init__("scheduler", None, planning=planning)
        if self._feed_path:
            self._feed = Feed(self._feed_path, self._core.feed)
        if self._trace_folder:
            job = {**self._job, "momentum": self.stats()["momentum"]}  # workers may say it
            self._recording = Recording(self._trace_folder, job, self._core.records)

    def serve(self) -> None:
        super().serve()
        self._starter.say_without(self.stats()["lost"])

    def leave(self, *, failed: bool = False) -> None:
        if self._feed is not None:
            self._feed.close()
            self._feed = None
        super().leave(failed=failed)
        if self._recording is not None:
            self._recording.close()
            self._recording = None


def _checked(model: Any) -> Any:
    """As float32; an update of another kind would be another one there."""
    values = np.asarray(model)
    if values.dtype != np.float32:
        raise InvalidArgumentError(f"an array of {values.dtype}; MLfabric takes float32")
    if values.size == 0:
        raise InvalidArgumentError("an array without elements")
    return values


def _checked_norm(norm: Any) -> float:
    try:
        value = float(norm)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidArgumentError(f"norm: {error}") from None
    if not 0 <= value < math.inf:
        raise InvalidArgumentError(f"norm is {value}; allowed: a finite number that is 0 or more")
    return value


def current_worker() -> Worker | None:
    """This process, if it is a worker of an MLfabric job, or was."""
    return _here if isinstance(_here, Worker) else None


def register_as_worker(model: Any, rule: Rule | None = None, mode: str = "") -> Worker:
    """Joins the job; returns when all are there.

    Of `model` only the shape counts, but for worker 0's if the server has no first values. `rule`:
    what the server is to do with updates; all workers ask for the same, or leave it to the
    scheduler. `mode`: who waits for whom, if the scheduler must have been told that.
    """
    return Worker(model, rule, mode)


def register_as_server(
    model: Any | None = None, *, update: Update | None = None, request: Request | None = None
) -> Holder:
    """Joins the job with the model's first values, or with worker 0's; `serve()` then serves.

    `update(model, change, updates)` is called instead of adding: it changes `model` in place by
    `change`, the sum of so many updates. What `request(model)` returns is what workers get of a
    version. Both get the model's shape, or flat arrays where worker 0 gives it.
    """
    return Holder("server", model, calls=Calls(update, request))


def register_as_replica(
    model: Any | None = None, *, update: Update | None = None, request: Request | None = None
) -> Holder:
    """As the server's, with the same values and the same calls."""
    return Holder("replica", model, calls=Calls(update, request))


def register_as_scheduler(planning: Planning = ALL_OF_IT) -> Scheduler:
    """The job begins here; `serve()` then waits for its end."""
    return Scheduler(planning)


def register(
    model: Any,
    at_end: Callable[[Any], object] | None = None,
    *,
    update: Update | None = None,
    request: Request | None = None,
) -> Worker:
    """Does what this process is told to (DMLC_ROLE): returns in a worker.

    In all others it serves until the job is over, and then ends the process. Whoever is the server
    then calls `at_end` with the model before. `update` and `request` as of `register_as_server`.
    """
    try:
        role = os.environ.get("DMLC_ROLE", "").strip()
        if role not in ("server", "replica", "scheduler"):
            return Worker(model)
        calls = Calls(update, request)
        serving = Scheduler() if role == "scheduler" else Holder(role, model, calls=calls)
        serving.serve()
        if at_end is not None and isinstance(serving, Holder) and serving.stats()["is_server"]:
            at_end(serving.model()[0])
    except SettingError as error:
        _end(error, 2)
    except PsliteError as error:
        _end(error, 1 if _here is None else _here.exit_code())
    sys.exit(0)


def _end(error: Exception, code: int) -> NoReturn:
    print(f"mercury: {error}", file=sys.stderr)
    sys.exit(code)
