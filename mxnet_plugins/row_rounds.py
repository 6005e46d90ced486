"""One key's row-sparse rounds: what is pushed, and the sum.

    idle --push--> under way --take--> idle

A sum is taken when it is wanted, not when it was pushed, so workers may push in any order.
"""

from __future__ import annotations

import mxnet as mx
import numpy as np
from mxnet.ndarray import NDArray
from mxnet.ndarray.sparse import RowSparseNDArray

from pslite_ext import _core


class RowRounds:
    def __init__(self, tensor: _core.Tensor, like: NDArray) -> None:
        self._tensor = tensor
        self._shape = like.shape
        self._dtype = like.dtype
        self._ticket: int | None = None  # of a round that is under way
        self.sums = 0  # that were asked for

    def set_use(self, use: str) -> None:
        self._tensor.set_use(use)

    def push(self, array: RowSparseNDArray) -> None:
        row_size = int(np.prod(self._shape[1:], dtype=np.int64))
        rows = array.indices.asnumpy().astype(np.int64)
        values = array.data.asnumpy().astype(self._dtype, copy=False)
        if len(rows) > 1 and not (np.diff(rows) > 0).all():
            rows, where = np.unique(rows, return_inverse=True)
            unique = np.zeros((len(rows), *values.shape[1:]), values.dtype)
            np.add.at(unique, where, values)
            values = unique
        self._ticket = self._tensor.push_rows(rows.tobytes(), values.tobytes(), row_size)
        self.sums += 1

    def workers(self) -> int:
        """Of how many workers the last sum is, which is waited for."""
        return self._tensor.workers(self.sums)

    def take(self) -> RowSparseNDArray | None:
        """The sum of the round that is under way, if one is."""
        if self._ticket is None:
            return None
        ticket, self._ticket = self._ticket, None
        raw_rows, raw_values = self._tensor.wait_rows(ticket)
        rows = np.frombuffer(raw_rows, np.int64)
        values = np.frombuffer(raw_values, np.dtype(self._dtype)).reshape((-1, *self._shape[1:]))
        like = {"shape": self._shape, "ctx": mx.cpu(0), "dtype": self._dtype}
        if len(rows) == 0:
            return mx.nd.sparse.zeros("row_sparse", **like)
        return mx.nd.sparse.row_sparse_array((values, rows), **like)
