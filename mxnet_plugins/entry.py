"""One key of a store: its tensor on the servers, and this worker's copies of it.

Two kinds of value. Without an optimizer the value is the last sum (at first, what worker 0 gave),
and it lives on the servers. With one, it is the weight: each worker keeps its own and applies the
optimizer to the summed gradient, so that all are equal, bit for bit, and servers only ever sum.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mxnet as mx
import numpy as np
from mxnet.ndarray import NDArray
from mxnet.ndarray.sparse import RowSparseNDArray

from mxnet_plugins import arguments
from mxnet_plugins.errors import InvalidArgumentError
from mxnet_plugins.keys import Key, check_rows, check_shapes, dtype_name, label, wire_key
from mxnet_plugins.optimizers import Moment, needs_sparse_weight
from mxnet_plugins.row_rounds import RowRounds
from pslite_ext import _core

Updater = Callable[[Any, NDArray, NDArray], None]
CPU = mx.cpu(0)


def handle(array: NDArray) -> int:
    """Valid as long as the caller holds the array: never of an expression's temporary."""
    return int(array.handle.value)


def on_cpu(array: NDArray) -> NDArray:
    return array if array.context.device_type.startswith("cpu") else array.copyto(CPU)


def dense(array: NDArray) -> NDArray:
    """The array itself where it is dense: MXNet's own conversion would copy it."""
    return array if array.stype == "default" else array.tostype("default")


class Entry:
    def __init__(self, store: int, key: Key, value: NDArray, name: str, asynchronous: bool) -> None:
        self.key = key
        self.name = name
        self.shape = value.shape
        self.dtype = value.dtype
        self.row_sparse = isinstance(value, RowSparseNDArray)
        self.asynchronous = asynchronous
        self._type = dtype_name(value)
        self.kind = f"row_sparse {self._type}" if self.row_sparse else self._type
        own, rows = wire_key(store, key), wire_key(store, key, "rows")
        self.label = label(key, name)
        self.tensor = _core.Tensor(
            own, name, self._type, self.shape, asynchronous, label=self.label
        )
        self._rows = RowRounds(
            _core.Tensor(rows, name, self._type, self.shape, parameter=own), value
        )
        self._pushed_at: Moment | None = None  # the rows that are under way
        # Every operation of this key mutates it, so they run in order.
        self.token = mx.nd.zeros((1,), ctx=CPU)
        self._sums = 0  # of whole arrays, that were asked for
        self._weight: NDArray | None = None  # a sum of rows, until all of it is asked for
        self._fetched = False  # the weight is what the servers had, and may be old
        self._queued = False  # the last push was dense, and the engine may not have begun it
        self._merged: NDArray | None = None
        self._staged: NDArray | None = None
        # The last sum, if it was pushed without an output.
        self._sum: NDArray | None = None

    def set_use(self, use: str) -> None:
        """What later sums are for: all workers must say the same."""
        self.tensor.set_use(use)
        self._rows.set_use(use)

    @property
    def is_summed(self) -> bool:
        """A sum was asked for."""
        return self._sums > 0 or self._rows.sums > 0

    def workers(self) -> int:
        """Of how many workers the last sum is, which is waited for."""
        return self.tensor.workers(self._sums) if self._queued else self._rows.workers()

    # --- what a script passes, checked before anything is done with it ----------------------------

    def check_shapes(self, arrays: list[NDArray]) -> None:
        check_shapes(self.key, self.shape, arrays)

    def check_pushed(self, arrays: list[NDArray]) -> None:
        self.check_shapes(arrays)
        by_rows = isinstance(arrays[0], RowSparseNDArray)
        if self.row_sparse and not by_rows:
            raise InvalidArgumentError(
                f"key {self.key!r} is row_sparse: push row_sparse arrays to it"
            )
        for array in arrays:
            if by_rows and not isinstance(array, RowSparseNDArray):
                raise InvalidArgumentError(
                    f"key {self.key!r}: one array is row_sparse, and another is not: push arrays "
                    "of one kind"
                )
            check_rows(self.key, array)

    def rows_of(self, row_ids: list[NDArray]) -> list[Any]:
        """The numbers of the rows that are asked for, for each output."""
        found = [np.unique(ids.asnumpy().astype(np.int64).reshape(-1)) for ids in row_ids]
        for rows in found:
            arguments.rows(self.key, rows, self.shape[0])
        return found

    # --- values -----------------------------------------------------------------------------------

    def set_initial(self, value: NDArray) -> None:
        """Worker 0's value becomes everybody's."""
        initial = dense(on_cpu(value))
        self.tensor.init(handle(initial), handle(self.token))

    def begin_with(self, value: NDArray) -> None:
        """This worker comes while the job runs, and its value is what the others have."""
        self._weight = self._empty()
        dense(on_cpu(value)).copyto(self._weight)

    def _empty(self) -> NDArray:
        return mx.nd.empty(self.shape, ctx=CPU, dtype=self.dtype)

    def weight(self) -> NDArray:
        """This worker's copy, dense whatever the key's kind; first fetched from the servers."""
        if self._weight is None:
            self._weight = self._empty()
            self._fetch(self._weight)
        self._weight = dense(self._weight)
        return self._weight

    def _fetch(self, weight: NDArray, priority: int = 0) -> None:
        self.tensor.pull(handle(weight), handle(self.token), priority)
        self._fetched = True

    def _newest_weight(self, priority: int, updater: Updater | None) -> NDArray:
        """In asynchronous training, the others may have changed it."""
        if self.asynchronous and updater is not None and self._weight is not None:
            self._fetch(self._weight, priority)
        return self.weight()

    def _forget_weight(self, updater: Updater | None) -> None:
        """Without an optimizer the servers' value changes with every sum, and nobody tells us."""
        if updater is None and self._fetched:
            self._weight, self._fetched = None, False

    def _sum_of(self, arrays: list[NDArray]) -> NDArray:
        """The sum over this worker's devices, dense, on the CPU, in our type."""
        if len(arrays) == 1:
            return self._typed(dense(on_cpu(arrays[0])))
        if self._staged is None:
            self._staged = self._empty()
        dense(arrays[0]).copyto(self._staged)
        for array in arrays[1:]:
            self._staged += self._typed(dense(on_cpu(array)))
        return self._staged

    def _typed(self, array: NDArray) -> NDArray:
        return array if array.dtype == self.dtype else array.astype(self.dtype)

    # --- dense ------------------------------------------------------------------------------------

    def push(
        self,
        arrays: list[NDArray],
        priority: int,
        updater: Updater | None,
        *,
        answered: bool = False,
    ) -> None:
        """`answered`: our weight becomes what the servers make of this."""
        self.settle(updater)
        if isinstance(arrays[0], RowSparseNDArray):
            self._push_rows(arrays, priority, updater, answered)
            return
        gradient = self._sum_of(arrays)
        self._queued = True
        if updater is None:
            self._weight = None
        if updater is None and not self.asynchronous:
            self._sum = self._merged = self._merged if self._merged is not None else self._empty()
            self._sums += 1
            self.tensor.pushpull(handle(gradient), handle(self._sum), handle(self.token), priority)
        elif updater is None:
            self.tensor.push(handle(gradient), handle(self.token), priority)
        elif self.asynchronous:
            self._push_change(gradient, priority, updater, answered)
        else:
            weight = self.weight()
            if self._merged is None:
                self._merged = self._empty()
            self._sums += 1
            self.tensor.pushpull(
                handle(gradient), handle(self._merged), handle(self.token), priority
            )
            updater(self.key, self._merged, weight)

    def _push_change(
        self, gradient: NDArray, priority: int, updater: Updater, answered: bool
    ) -> None:
        """Asynchronous: what the optimizer changes of our weight is added to the servers'."""
        before = self.weight()
        weight = self._weight = before.copy()
        updater(self.key, gradient, weight)
        change = weight - before
        if answered:
            self.tensor.pushpull(handle(change), handle(weight), handle(self.token), priority)
        else:
            self.tensor.push(handle(change), handle(self.token), priority)

    def pull(
        self, outs: list[NDArray], priority: int, updater: Updater | None, *, ask: bool = True
    ) -> None:
        """`ask`: our weight may be old."""
        self.settle(updater)
        self._forget_weight(updater)
        if self._weight is not None or updater is not None:
            weight = self._newest_weight(priority, updater) if ask else self.weight()
            for out in outs:
                weight.copyto(out)
            return
        if self._sum is not None:
            for out in outs:
                self._sum.copyto(out)
            return
        target = self._target(outs, self.token)
        self.tensor.pull(handle(target), handle(self.token), priority)
        self._spread(target, outs)

    def pushpull(
        self,
        arrays: list[NDArray],
        outs: list[NDArray],
        priority: int,
        updater: Updater | None,
    ) -> None:
        self.settle(updater)
        self._forget_weight(updater)
        sparse = isinstance(arrays[0], RowSparseNDArray) or self._weight is not None
        if updater is not None or sparse:
            self.push(arrays, priority, updater, answered=True)
            self.pull(outs, priority, updater, ask=False)
            return
        gradient = self._sum_of(arrays)
        target = self._target(outs, gradient)
        self._sum = None
        self._queued = True
        self._sums += not self.asynchronous
        self.tensor.pushpull(handle(gradient), handle(target), handle(self.token), priority)
        self._spread(target, outs)

    def _target(self, outs: list[NDArray], given: NDArray) -> NDArray:
        """An array to receive into while `given` is sent: one of the outputs, if one will do.

        Not another view of `given`: an operation that reads and writes one variable waits for
        itself.
        """
        for out in outs:
            on_host = out.context.device_type.startswith("cpu")
            view = out is not given and _core.same_variable(handle(out), handle(given))
            if not view and on_host and out.stype == "default" and out.dtype == self.dtype:
                return out
        if self._merged is None:
            self._merged = self._empty()
        return self._merged

    @staticmethod
    def _spread(target: NDArray, outs: list[NDArray]) -> None:
        for out in outs:
            if out is not target:
                target.copyto(out)

    # --- row-sparse -------------------------------------------------------------------------------

    def _push_rows(
        self, arrays: list[NDArray], priority: int, updater: Updater | None, answered: bool
    ) -> None:
        if updater is not None:
            self.weight()  # fetched before any round can replace it
        merged = self._typed(on_cpu(arrays[0]))
        for array in arrays[1:]:
            merged = mx.nd.sparse.add(merged, self._typed(on_cpu(array)))
        if self.asynchronous:
            if updater is None:
                total = dense(merged)
                self.tensor.push(handle(total), handle(self.token))
            else:
                self._push_change(merged, priority, updater, answered)
            return
        if self._queued:
            self.token.wait_to_read()  # workers push whole arrays and rows in the same order
            self._queued = False
        self._rows.push(merged)
        self._pushed_at = Moment(updater, self.key)

    def settle(self, updater: Updater | None) -> None:
        """The sum of a row-sparse round becomes, or changes, the value."""
        total = self._rows.take()
        if total is None:
            return
        if updater is not None:
            assert self._pushed_at is not None
            with self._pushed_at.again():
                self._update_rows(total, updater)
        else:
            # MXNet cannot pick rows of an array that has none.
            self._weight = total if total.indices.shape[0] else dense(total)
            self._fetched = False

    def _update_rows(self, total: RowSparseNDArray, updater: Updater) -> None:
        weight = self.weight()
        if not self.row_sparse or not needs_sparse_weight(updater):
            updater(self.key, total, weight)
            return
        rows = mx.nd.array(np.arange(self.shape[0]), ctx=CPU, dtype="int64")
        like = {"shape": self.shape, "ctx": CPU, "dtype": self.dtype}
        sparse = mx.nd.sparse.row_sparse_array((weight, rows), **like)
        updater(self.key, total, sparse)
        sparse.copyto(weight)

    def pull_rows(
        self, outs: list[NDArray], row_ids: list[Any], priority: int, updater: Updater | None
    ) -> None:
        """`row_ids`: as rows_of gives them."""
        self.settle(updater)
        self._forget_weight(updater)
        if self._weight is None or self.asynchronous:
            self._newest_weight(priority, updater)
        for out, rows in zip(outs, row_ids):
            if len(rows) == 0:
                mx.nd.sparse.zeros("row_sparse", self.shape, dtype=self.dtype).copyto(out)
                continue
            wanted = mx.nd.array(rows, ctx=CPU, dtype="int64")
            if isinstance(self._weight, RowSparseNDArray):
                picked = mx.nd.sparse.retain(self._weight, wanted)
            else:
                picked = mx.nd.sparse.row_sparse_array(
                    (mx.nd.take(self._weight, wanted), wanted),
                    shape=self.shape,
                    ctx=CPU,
                    dtype=self.dtype,
                )
            picked.copyto(out)
