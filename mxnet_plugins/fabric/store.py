"""The store behind `mx.kv.create('dist_async')` and `'dist_sync'` with MERCURY_FABRIC=1.

What a script pushes of a step becomes one update of the whole model, or one all-reduce (steps.py),
as soon as it has pushed all that it pushes in a step. What that makes of the model goes to whoever
has pulled. Which keys belong to a step is known from the parameters that have gradients, else from
the first step: a key that is pushed a second time begins another one.

    filling --all is known--> joined: the server has worker 0's values
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

import mxnet as mx
import numpy as np
from mxnet.ndarray import NDArray

from mxnet_plugins import arguments, errors, keys, optimizers, trainers
from mxnet_plugins.base_store import NO_STORES, BaseStore
from mxnet_plugins.entry import CPU, Updater, dense, on_cpu
from mxnet_plugins.errors import InvalidArgumentError
from mxnet_plugins.fabric import job
from mxnet_plugins.fabric.optimizers import WorkerPart
from mxnet_plugins.fabric.parameters import Parameters, StepKeys
from mxnet_plugins.fabric.steps import Asynchronous, Pushed, Steps, Synchronous
from mxnet_plugins.keys import Key, announced, check_rows, check_shapes, pairs, single
from pslite_ext import fabric
from pslite_ext.errors import PsliteError
from pslite_ext.fabric import alike
from pslite_ext.fabric.options import node_of
from pslite_ext.job import figures
from pslite_ext.job.leaving import at_exit, uncaught
from pslite_ext.job.step_options import StepOptions, is_seldom_compared
from pslite_ext.job.steps import STEPS

Arrays = list[tuple[Key, list[NDArray]]]


class FabricKVStore(BaseStore):
    """All tensors of a step go to the server as one update."""

    def __init__(self, name: str, *, synchronous: bool) -> None:
        errors.install()
        trainers.install()
        self._steps: Steps = Synchronous() if synchronous else Asynchronous()
        try:
            self._settings = job.settings()
            if synchronous:
                job.refuse_staleness(self._settings, name)
            self._rank = node_of(self._settings)
        except PsliteError as error:
            raise errors.as_mxnet(error) from None
        if self._rank < 0:
            raise InvalidArgumentError(f"a {self._settings.values['DMLC_ROLE']} {NO_STORES}")
        self._name = name
        self._parameters = Parameters()
        self._names: dict[Key, str] = {}
        self._announced: set[Key] = set()
        self._trained: set[Key] = set()  # have a gradient
        self._optimizer: WorkerPart | None = None
        self._worker: fabric.Worker | None = None
        self._model: Any = np.empty(0, np.float32)  # until the job begins, this worker's own
        self._first: list[Any] = []
        self._step = StepKeys([])
        self._gradients: dict[Key, NDArray] = {}
        self._waiting: Arrays = []
        self._options = StepOptions(lambda _, told: self._agree([told]), is_seldom_compared)

    # --- what it is -------------------------------------------------------------------------------

    @property
    def rank(self) -> int:
        return self._rank

    def announce(self, tensors: Iterable[tuple[Any, ...]]) -> None:
        """(key, name, priority) of tensors to come; an update has no priorities."""
        self._names.update((key, name) for key, name, _ in announced(tensors))

    def announce_parameters(self, parameters: Iterable[tuple[Key, str, Any, Any]]) -> None:
        """(key, name, shape, dtype): all of a model."""
        self._names.update((key, name) for key, name, _, _ in parameters)
        self._announced.update(self._names)

    # --- values -----------------------------------------------------------------------------------

    def _label(self, key: Key) -> str:
        return keys.label(key, self._names.get(key, str(key)))

    def _check(self, key: Key, arrays: list[NDArray]) -> None:
        if key not in self._parameters:
            raise InvalidArgumentError(f"key {key!r} is not in the store: init it first")
        check_shapes(key, self._parameters.shape(key), arrays)

    def init(self, key: Any, value: Any) -> None:
        values = single(key, value)
        for k, array in values:  # all of them or none
            if k in self._parameters:
                raise InvalidArgumentError(f"key {k!r} is in the store already: init it once")
            label = self._label(k)
            if self._worker is not None:
                raise InvalidArgumentError(
                    f"{label} comes after the job has begun: under MLfabric all parameters must be "
                    "in the store before the first push"
                )
            if array.stype != "default" or np.dtype(array.dtype) != np.float32:
                kind = array.stype if array.stype != "default" else np.dtype(array.dtype).name
                raise InvalidArgumentError(
                    f"{label} is {kind}: under MLfabric models are dense and float32"
                )
        for k, array in values:
            self._parameters.add(k, array.shape)
            self._first.append(array.asnumpy().ravel())
            if array.grad is not None:
                self._trained.add(k)
        self._join_when_all_is_known()

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        del priority
        for (k, array), (_, outs) in zip(single(key, value), pairs(key, out)):
            check_shapes(k, array.shape, outs)
        self.init(key, value)
        self.pull(key, out)

    def push(self, key: Any, value: Any, priority: int = 0) -> None:
        del priority
        self._take(pairs(key, value), {})

    def pull(
        self, key: Any, out: Any = None, priority: int = 0, ignore_sparse: bool = True
    ) -> None:
        del priority, ignore_sparse
        if out is None:
            raise InvalidArgumentError("pull needs out=")
        wanted = pairs(key, out)
        for k, outs in wanted:
            self._check(k, outs)
        if self._worker is None or self._gradients:
            self._waiting += wanted  # they get what is now, and what the step makes of it
        self._fill(wanted)

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        del priority
        values = pairs(key, value)
        self._take(values, dict(values if out is None else pairs(key, out)))

    def _take(self, values: Arrays, wanted: dict[Key, list[NDArray]]) -> None:
        for k, arrays in (*values, *wanted.items()):
            self._check(k, arrays)
        for k, arrays in values:
            for array in arrays:
                check_rows(k, array)
        if self._optimizer is None and self._steps.needs_optimizer:
            raise InvalidArgumentError(
                "under MLfabric the server adds up what optimizers make of gradients: "
                "set_optimizer first"
            )
        self._join()
        # All before a step that this ends writes into them what was waited for.
        gradients = [(k, self._sum_of(arrays)) for k, arrays in values]
        for k, gradient in gradients:
            if isinstance(self._steps, Synchronous):
                self._check_keys(k)
            if self._step.begins_with(k):
                self._finish_step()
            self._gradients[k] = gradient
            if k in wanted:
                self._waiting.append((k, wanted[k]))
            if self._step.pushed(k):
                self._finish_step()

    @staticmethod
    def _sum_of(arrays: list[NDArray]) -> NDArray:
        gradient = dense(on_cpu(arrays[0])).copy()
        for array in arrays[1:]:
            gradient += dense(on_cpu(array))
        return gradient

    def _check_keys(self, key: Key) -> None:
        """Synchronous steps have the same keys, or some of their sums would come a step late."""
        advice = (
            f"in {self._name!r} under MLfabric, push the same tensors in each step (freeze a "
            "parameter by an lr_mult of 0)"
        )
        if self._step.is_new(key):
            raise InvalidArgumentError(
                f"{self._label(key)} is not one of those that each step pushes: {advice}"
            )
        # With an optimizer, weights wait for the next step: once, and on all workers alike.
        if self._optimizer is None and self._step.has(key):
            missing = min(self._step.missing(), key=str)
            raise InvalidArgumentError(
                f"{self._label(missing)} was not pushed, so this step has no sums: {advice}"
            )

    def row_sparse_pull(
        self, key: Any, out: Any = None, priority: int = 0, row_ids: Any = None
    ) -> None:
        del key, out, priority, row_ids
        raise InvalidArgumentError("under MLfabric there are no row_sparse parameters")

    def _fill(self, wanted: Arrays) -> None:
        whole = self._model if self._worker is not None else np.concatenate(self._first)
        for key, outs in wanted:
            value = mx.nd.array(self._parameters.part(whole, key), ctx=CPU, dtype=np.float32)
            for out in outs:
                value.copyto(out)

    # --- the job ----------------------------------------------------------------------------------

    def _join_when_all_is_known(self) -> None:
        known = self._announced and all(key in self._parameters for key in self._announced)
        if known and self._optimizer is not None:
            self._join()

    def _join(self) -> None:
        if self._worker is not None:
            return
        if fabric.current_worker() is not None:
            raise InvalidArgumentError(
                "under MLfabric a process has one store, with all parameters: this is the second"
            )
        first = np.concatenate(self._first)
        at_exit(figures.say)  # after this worker has left
        worker = fabric.register_as_worker(first, self._steps.rule(self._optimizer))
        at_exit(self._finish_at_exit)
        figures.serve(self._settings.values)
        self._model = worker.get()
        self._worker = worker
        self._agree(self._said())
        self._first = []
        self._step = StepKeys(self._trained or self._parameters.keys())
        self._answer()

    def _said(self) -> list[str]:
        """What workers must have alike: all of it where they all make the same steps."""
        whole = isinstance(self._steps, Synchronous)
        trained = self._trained if whole else set()
        updater = None if self._optimizer is None else self._optimizer.updater
        return [
            f"as its optimizer {optimizers.use(updater, with_options=whole) or 'none'}",
            *(
                f"key {key!r} of shape {shape}{', which learns' if key in trained else ''}"
                for key, shape in self._parameters.shapes()
            ),
        ]

    def _agree(self, lines: list[str]) -> None:
        assert self._worker is not None
        if self.num_workers == 1:
            return
        try:
            alike.agree(self._worker, lines)
        except PsliteError as error:
            raise errors.as_mxnet(error) from None

    def begin_sums(self, optimizer: Any) -> None:
        if isinstance(self._steps, Synchronous) and self._worker is not None:
            self._options.step(optimizers.told(optimizer), optimizer.num_update + 1)

    def _answer(self) -> None:
        waiting, self._waiting = self._waiting, []
        self._fill(waiting)

    def _finish_step(self) -> None:
        """What has been pushed changes the model."""
        if not self._gradients:
            return
        assert self._worker is not None
        gradients, self._gradients = self._gradients, {}
        self._step.over()
        for key in gradients:
            STEPS.pushed(key)
        pushed = Pushed(self._model, self._parameters, gradients)
        self._model = self._steps.finish(self._worker, pushed, self._optimizer)
        self._answer()

    def _finish_at_exit(self) -> None:
        """A step that nothing follows. Of a job that has failed, leaving it tells."""
        if uncaught() is not None:
            return  # what a script had pushed when it failed is no step
        with contextlib.suppress(PsliteError):
            self._finish_step()

    # --- optimizer --------------------------------------------------------------------------------

    def set_optimizer(self, optimizer: Any) -> None:
        self._set_updater(mx.optimizer.get_updater(arguments.optimizer(optimizer)))
        self._join_when_all_is_known()

    def _set_updater(self, updater: Updater | None) -> None:
        arguments.updater(updater)
        if updater is None:
            raise InvalidArgumentError("under MLfabric an optimizer is needed, not None")
        optimizers.check(
            updater,
            asynchronous=isinstance(self._steps, Asynchronous),
            workers=self.num_workers,
        )
        chosen = self._steps.part(updater)
        before = chosen.rule if self._optimizer is None else self._optimizer.rule
        if self._worker is not None and chosen.rule != before:
            raise InvalidArgumentError(
                "another momentum than the job began with: the server applies it, and keeps to the "
                "first"
            )
        self._optimizer = chosen

    @property
    def _updater(self) -> Any:
        """Where Trainer looks for it."""
        return None if self._optimizer is None else self._optimizer.updater

    def _states(self, verb: str) -> Any:
        if self._optimizer is not None and self._optimizer.rule != fabric.Rule():
            raise InvalidArgumentError(
                f"the server has the momentum, so there are no states to {verb} here"
            )
        return super()._states(verb)

    def set_gradient_compression(self, compression_params: dict[str, Any]) -> None:
        kind, _ = arguments.compression(compression_params)
        if kind != "none":
            raise InvalidArgumentError("under MLfabric updates are not compressed")

    # --- what jobs under MLfabric have not --------------------------------------------------------

    def num_dead_node(self, node_id: int = 7, timeout: int = 60) -> int:
        """A job goes on without what is lost, or fails."""
        del node_id, timeout
        return 0

    def barrier(self) -> None:
        if isinstance(self._steps, Asynchronous):
            raise InvalidArgumentError("under MLfabric no worker waits for another: no barrier")
        if self._worker is None:
            raise InvalidArgumentError(
                "under MLfabric a barrier needs the job to have begun: it does with the first push"
            )
        self._worker.all_reduce(np.zeros_like(self._model))

    _barrier = barrier

    def _send_command_to_servers(self, head: int, body: str) -> None:
        del head, body
        raise InvalidArgumentError("under MLfabric the server takes no commands")

    send_command_to_servers = _send_command_to_servers
