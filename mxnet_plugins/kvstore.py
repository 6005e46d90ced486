"""The store behind `mx.kv.create('dist_sync')` and its like."""

from __future__ import annotations

import functools
import itertools
import sys
import weakref
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

import mxnet as mx
import numpy as np
from mxnet.ndarray import NDArray

from mxnet_plugins import arguments, optimizers, this_worker
from mxnet_plugins.base_store import BaseStore
from mxnet_plugins.entry import Entry, Updater
from mxnet_plugins.errors import InvalidArgumentError
from mxnet_plugins.keys import (
    Key,
    announced,
    check_shapes,
    checked,
    label,
    pairs,
    single,
    wire_key,
)
from pslite_ext import _core
from pslite_ext.errors import PeerLostError, PsliteError, reworded
from pslite_ext.job.step_options import StepOptions
from pslite_ext.job.steps import STEPS
from pslite_ext.job.wire import codec_for
from pslite_ext.wire_words import AUTO, PLAIN

_store_ids = itertools.count()
stores: weakref.WeakSet[MercuryKVStore] = weakref.WeakSet()  # of this process
_Method = TypeVar("_Method", bound=Callable[..., Any])


def _unrecorded(method: _Method) -> _Method:
    """Our copies and sums are no part of a script's computation, wherever it calls the store.

    gluon reads its sparse parameters inside `autograd.record()`.
    """

    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        with mx.autograd.pause(train_mode=mx.autograd.is_training()):
            return method(*args, **kwargs)

    return cast(_Method, call)


def _agree(subject: int, claim: Callable[[], None]) -> None:
    try:
        claim()
    except PeerLostError as error:
        if error.failure is None or error.failure.about != ("model", subject):
            raise
        # Another worker has ended of it before this one has heard.
        raise reworded(error, str(error), InvalidArgumentError) from None


class MercuryKVStore(BaseStore):
    """Tensors go to the servers, each by itself."""

    def __init__(self, name: str, *, asynchronous: bool) -> None:
        self._asynchronous = asynchronous
        self._settings = this_worker.join(asynchronous)
        self._name = name
        self._id = next(_store_ids)
        self._entries: dict[Key, Entry] = {}
        self._names: dict[Key, str] = {}
        self._models = itertools.count()
        self._compression = (_core.wire(), 0.5)
        if self._compression[0] == AUTO:
            raise InvalidArgumentError("MERCURY_WIRE is 'auto', which is for PyTorch: name a codec")
        self._is_asked = False  # by the script
        stores.add(self)
        self._updater: Updater | None = None
        self._use = ""  # of sums: what they update
        self._told_workers = 0  # to one that came late, by who let it in
        self.step_options = StepOptions(self._claim_step)

    # --- what it is -------------------------------------------------------------------------------

    @property
    def rank(self) -> int:
        """This worker's number, from 0."""
        return _core.rank()

    @property
    def num_workers(self) -> int:
        """How many workers the job has.

        Where it goes on without those that it loses (docs/elastic.md), this is how many the last
        sum is of, which is waited for: so all workers read the same between the same two pushes.
        """
        first = next((entry for entry in self._entries.values() if entry.is_summed), None)
        if first is None and _core.came_late():
            return self._told_workers or _core.workers()
        if first is None or not _core.elastic():
            return super().num_workers
        return first.workers()

    def tell_workers(self, number: int) -> None:
        """Of one that comes late: what the others' `num_workers` is until the next sum."""
        self._told_workers = number

    @property
    def local_rank(self) -> int:
        """This worker's number among those of its host, from 0: which of its devices it may use."""
        return _core.local_rank()[0]

    @property
    def local_size(self) -> int:
        """How many workers share this one's host."""
        return _core.local_rank()[1]

    def num_dead_node(self, node_id: int = 7, timeout: int = 60) -> int:
        """Nodes of a group (1 scheduler, 2 servers, 4 workers, or a sum) that are lost."""
        del timeout  # MERCURY_HEARTBEAT_TIMEOUT_MS says when a node is lost
        return _core.num_dead_nodes(arguments.whole("a group of nodes", node_id))

    def announce(self, tensors: Iterable[tuple[Any, ...]]) -> None:
        """(key, name, priority) of tensors to come; (key, name, bytes, priority) will do."""
        known = announced(tensors)
        self._names.update((key, name) for key, name, _ in known)
        _core.announce([(wire_key(self._id, key), name, p) for key, name, p in known])

    def announce_parameters(self, parameters: Iterable[tuple[Key, str, Any, Any]]) -> None:
        """(key, name, shape, dtype), most urgent first: what Trainer and Module know.

        All of a model, so workers whose models have other keys hear of it here.
        """
        keys = [(key, name) for key, name, _, _ in parameters]
        self.announce((key, name, -index) for index, (key, name) in enumerate(keys))
        subject = wire_key(self._id, next(self._models), "model")
        said = ((repr(key), " ".join(name.split())) for key, name in keys)
        _agree(subject, lambda: _core.claim_model(subject, said))

    def begin_sums(self, optimizer: Any) -> None:
        """Where all workers' optimizers must be told the same."""
        if not self._asynchronous:
            self.step_options.step(optimizers.told(optimizer), optimizer.num_update + 1)

    def _claim_step(self, step: int, told: str) -> None:
        subject = wire_key(self._id, step, "step")
        try:
            _agree(subject, lambda: _core.claim_steps(subject, told))
        except PeerLostError:
            self._raise_refusals(self._entries.values())
            raise

    def _check(self) -> None:
        """Raises what has become of the job; what workers disagree on before what came of that."""
        try:
            _core.check()
        except PeerLostError:
            self._raise_refusals(self._entries.values())
            raise

    @staticmethod
    def _raise_refusals(entries: Iterable[Entry]) -> None:
        """Raises what workers disagree on: once the job has failed, all else is its failure."""
        for entry in entries:
            try:
                entry.tensor.check()
            except PeerLostError:
                continue
            except PsliteError as error:
                raise error from None

    # --- values -----------------------------------------------------------------------------------

    def _entry(self, key: Key) -> Entry:
        entry = self._entries.get(key)
        if entry is None:
            raise InvalidArgumentError(f"key {key!r} is not in the store: init it first")
        return entry

    def _check_pushed(self, values: list[tuple[Key, list[NDArray]]], priority: Any) -> int:
        """All of them, before any is used: a refusal changes nothing. Returns the priority."""
        number = 0
        for k, arrays in values:
            self._entry(k).check_pushed(arrays)
            number = checked(k, priority)
        return number

    def _add(self, values: list[tuple[Key, NDArray]]) -> list[Entry]:
        """All of them or none: nothing is sent before all are known to fit."""
        for key, _ in values:
            if key in self._entries:
                raise InvalidArgumentError(
                    f"key {key!r} is in the store already: init it once; "
                    "a second Trainer or Module needs a store of its own (mx.kv.create)"
                )
        if self._asynchronous:
            for key, value in values:
                optimizers.check_async(self._updater, label(key, self._name_of(key)), value.dtype)
        entries = [self._made(key, value) for key, value in values]
        outside = _core.outside() is not None
        if not outside and _core.came_late():
            self._check_untrained(entries)
        for entry, (key, value) in zip(entries, values):
            if outside:
                entry.begin_with(value)  # its checkpoint has given it what the others have
            elif self.rank == 0:
                entry.set_initial(value)
            self._entries[key] = entry
        return entries

    def _name_of(self, key: Key) -> str:
        return self._names.get(key, str(key))

    def _made(self, key: Key, value: NDArray) -> Entry:
        name = self._name_of(key)
        if key not in self._names:
            self.announce([(key, name, 0)])
        entry = Entry(self._id, key, value, name, self._asynchronous)
        self._compress(entry)
        entry.set_use(self._use)
        return entry

    @staticmethod
    def _check_untrained(entries: list[Entry]) -> None:
        for entry in entries:
            if entry.tensor.agreed:
                raise InvalidArgumentError(
                    f"{entry.label}: the other workers have trained it before this one came: name "
                    "its Trainer in mxnet_plugins.checkpoint, so that it begins as theirs is"
                )

    @_unrecorded
    def init(self, key: Any, value: Any) -> None:
        """On every worker, once for each key; worker 0's values count. Waits for all workers."""
        self._check()
        added = self._add(single(key, value))
        for entry in added:
            entry.token.wait_to_read()
        if _core.outside() is not None:
            return
        # Whatever workers disagree on: all of them come to the barrier.
        try:
            self._barrier()
        except PeerLostError as error:
            self._raise_refusals(added)
            alone = ", ".join(entry.label for entry in added if not entry.tensor.agreed)
            if not alone:
                raise
            text = f"{error}; this one has {alone}, which not all workers have"
            raise reworded(error, text) from None
        for entry in added:
            entry.tensor.check()

    @_unrecorded
    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        """init and pull in one; worker 0's values are in `out` when it is read."""
        self._check()
        values, outputs = single(key, value), pairs(key, out)
        for (k, array), (_, outs) in zip(values, outputs):
            check_shapes(k, array.shape, outs)
            priority = checked(k, priority)
        # The others' pulls wait on the servers until worker 0's value is there: no barrier.
        for entry, (_, outs) in zip(self._add(values), outputs):
            entry.pull(outs, priority, self._updater)

    @_unrecorded
    def push(self, key: Any, value: Any, priority: int = 0) -> None:
        """Adds this worker's arrays to the sum; the higher the priority, the sooner they go."""
        self._check()
        values = pairs(key, value)
        priority = self._check_pushed(values, priority)
        for k, arrays in values:
            self._entries[k].push(arrays, priority, self._updater)
            STEPS.pushed((self._id, k))

    @_unrecorded
    def pull(
        self, key: Any, out: Any = None, priority: int = 0, ignore_sparse: bool = True
    ) -> None:
        """What the pushes before it led to: the weight with an optimizer, else the sum."""
        self._check()
        if out is None:
            raise InvalidArgumentError("pull needs out=")
        wanted = []
        for k, outs in pairs(key, out):
            dense = [o for o in outs if o.stype == "default"]
            if len(dense) < len(outs) and not ignore_sparse:
                raise InvalidArgumentError(f"key {k!r}: use row_sparse_pull for sparse arrays")
            if dense:
                entry = self._entry(k)
                entry.check_shapes(dense)
                priority = checked(k, priority)
                wanted.append((entry, dense))
        for entry, dense in wanted:
            entry.pull(dense, priority, self._updater)

    @_unrecorded
    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        """push and pull in one, into `out` or else into `value`; faster than the two calls."""
        self._check()
        values = outputs = pairs(key, value)
        priority = self._check_pushed(values, priority)
        if out is not None and out is not value:
            outputs = pairs(key, out)
            for k, outs in outputs:
                self._entries[k].check_shapes(outs)
        for (k, arrays), (_, outs) in zip(values, outputs):
            self._entries[k].pushpull(arrays, outs, priority, self._updater)
            STEPS.pushed((self._id, k))

    @_unrecorded
    def row_sparse_pull(
        self, key: Any, out: Any = None, priority: int = 0, row_ids: Any = None
    ) -> None:
        """As pull, but only the rows of `row_ids`, into `row_sparse` arrays."""
        self._check()
        if out is None or row_ids is None:
            raise InvalidArgumentError("row_sparse_pull needs out= and row_ids=")
        # Of one key, in a list or not, as in stock: not an array whose rows are values of keys.
        ids = pairs(key, [row_ids] if isinstance(row_ids, NDArray) else row_ids)
        wanted = []
        for (k, outs), (_, rows) in zip(pairs(key, out), ids):
            if len(rows) == 1:
                rows = rows * len(outs)
            if len(rows) != len(outs):
                raise InvalidArgumentError(f"key {k!r}: {len(outs)} outputs, {len(rows)} row_ids")
            entry = self._entry(k)
            entry.check_shapes(outs)
            if any(out.stype != "row_sparse" for out in outs):  # rows not asked for would be lost
                raise InvalidArgumentError(
                    f"key {k!r}: row_sparse_pull needs row_sparse arrays; use pull for others"
                )
            priority = checked(k, priority)
            wanted.append((entry, outs, entry.rows_of(rows)))
        for entry, outs, numbers in wanted:
            entry.pull_rows(outs, numbers, priority, self._updater)

    # --- optimizer --------------------------------------------------------------------------------

    def set_optimizer(self, optimizer: Any) -> None:
        """On every worker; nothing is sent to the servers."""
        self._set_updater(mx.optimizer.get_updater(arguments.optimizer(optimizer)))

    @_unrecorded
    def _set_updater(self, updater: Updater | None) -> None:
        arguments.updater(updater)
        most = max(super().num_workers, _core.places())
        optimizers.check(updater, asynchronous=self._asynchronous, workers=most)
        if self._asynchronous:
            optimizers.check_compression(updater, self._compression[0])
            for entry in self._entries.values():
                optimizers.check_async(updater, entry.label, entry.dtype)
        for entry in self._entries.values():
            entry.settle(self._updater)
            entry.weight()  # the servers' value is the weight until gradients are pushed
        self._updater = updater
        # One that comes late sets its optimizer when the others' options have changed.
        self._use = optimizers.use(updater, with_options=not _core.elastic())
        for entry in self._entries.values():
            entry.set_use(self._use)

    @_unrecorded
    def _states(self, verb: str) -> Any:
        for entry in self._entries.values():
            entry.settle(self._updater)
        return super()._states(verb)

    def set_gradient_compression(self, compression_params: dict[str, Any]) -> None:
        """Such as {"type": "bf16"} (docs/bytes.md), or {"type": "2bit", "threshold": 0.5}: from the
        next push on, of float32 arrays."""
        compression = arguments.compression(compression_params)
        if self._asynchronous:
            optimizers.check_compression(self._updater, compression[0])
        self._compression, self._is_asked = compression, True
        for entry in self._entries.values():
            self._compress(entry)

    def _compress(self, entry: Entry) -> None:
        kind, threshold = self._compression
        if entry.row_sparse or np.dtype(entry.dtype) != np.float32:
            if self._is_asked and kind != "none":
                print(
                    f"mercury: {entry.label} is {entry.kind}, so it is not sent as {kind}: only "
                    "whole float32 arrays can be",
                    file=sys.stderr,
                )
            return
        if kind in _core.wires():
            kind = codec_for(kind, PLAIN, entry.shape)
        entry.tensor.set_compression(kind, threshold)

    # --- the job ----------------------------------------------------------------------------------

    def _barrier(self) -> None:
        _core.barrier()

    barrier = _barrier

    def _send_command_to_servers(self, head: int, body: str) -> None:
        text = arguments.encodable("a command's body", body)
        _core.command(arguments.whole("a command's head", head), text.encode())

    send_command_to_servers = _send_command_to_servers

    def trace(self, on: bool) -> None:
        """Records from the next iteration on, or no more, here and on the servers.

        The job must have MERCURY_TRACE_DIR. Call it on every worker, at the same step.
        """
        _core.trace_switch(on)
