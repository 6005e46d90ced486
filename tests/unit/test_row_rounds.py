from __future__ import annotations

from typing import Any, cast

import mxnet as mx
import numpy as np

from mxnet_plugins.row_rounds import RowRounds
from pslite_ext import _core


class _Echo:
    """Of one worker: a round's sum is what it has pushed."""

    def __init__(self) -> None:
        self.pushed: tuple[bytes, bytes] = (b"", b"")

    def push_rows(self, rows: bytes, values: bytes, row_size: int) -> int:
        assert row_size * 4 * (len(rows) // 8) == len(values)
        self.pushed = (rows, values)
        return 7

    def wait_rows(self, ticket: int) -> tuple[bytes, bytes]:
        assert ticket == 7
        return self.pushed


def _rows(rows: list[int], values: Any) -> Any:
    return mx.nd.sparse.row_sparse_array((np.array(values, np.float32), rows), shape=(5, 2))


def test_a_sum_is_taken_once_and_rows_that_come_twice_are_added() -> None:
    rounds = RowRounds(cast(_core.Tensor, _Echo()), mx.nd.zeros((5, 2)))
    assert rounds.take() is None
    rounds.push(_rows([3, 1, 3], [[1, 2], [3, 4], [5, 6]]))
    total = rounds.take()
    assert total is not None
    assert total.indices.asnumpy().tolist() == [1, 3]
    assert total.data.asnumpy().tolist() == [[3, 4], [6, 8]]
    assert rounds.take() is None


def test_rows_go_out_in_the_key_s_type() -> None:
    rounds = RowRounds(cast(_core.Tensor, _Echo()), mx.nd.zeros((5, 2)))
    rounds.push(_rows([3, 1], [[1, 2], [3, 4]]).astype("float64"))
    total = rounds.take()
    assert total is not None
    assert total.asnumpy().tolist() == [[0, 0], [3, 4], [0, 0], [1, 2], [0, 0]]


def test_a_round_without_rows_has_a_sum_without_rows() -> None:
    rounds = RowRounds(cast(_core.Tensor, _Echo()), mx.nd.zeros((5, 2)))
    rounds.push(mx.nd.sparse.zeros("row_sparse", (5, 2)))
    total = rounds.take()
    assert total is not None
    assert total.shape == (5, 2)
    assert total.indices.size == 0
