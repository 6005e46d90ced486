"""The patched MXNet takes shapes and indices of numbers that NumPy 2 writes as np.int64(2)."""

from __future__ import annotations

from typing import Any

import mxnet as mx
import numpy as np
import pytest


class Two(np.int64):
    """A number in NumPy 2's way, whichever NumPy this is."""

    def __repr__(self) -> str:
        return f"np.int64({int(self)})"


TWO = Two(2)


@pytest.mark.parametrize("shape", [(TWO,), [TWO], (TWO, 3), [3, TWO]])
def test_shape_of_an_array(shape: Any) -> None:
    assert mx.nd.zeros(shape).shape == tuple(map(int, shape))
    assert mx.nd.random.normal(shape=shape).shape == tuple(map(int, shape))


def test_index() -> None:
    array = mx.nd.arange(12).reshape((4, 3))
    array[TWO] = 7
    array[:TWO] = mx.nd.ones((1, 3))
    assert array.asnumpy().sum() == 6 + 21 + 9 + 10 + 11


def test_shape_of_a_symbol() -> None:
    data = mx.sym.Variable("data", shape=(TWO, 3))
    assert data.list_attr()["__shape__"] == "(2, 3)"
    assert mx.sym.zeros((3, TWO)).infer_shape()[1] == [(3, 2)]


def test_shape_of_an_iterator_s_data(tmp_path: Any) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("1,2\n3,4\n")
    batch = mx.io.CSVIter(data_csv=str(rows), data_shape=(TWO,), batch_size=2).next()
    assert batch.data[0].asnumpy().tolist() == [[1, 2], [3, 4]]


def test_what_is_no_number_is_written_as_before() -> None:
    for value in (None, True, 2, 0.5, "a", np.float32(0.1), (), (1,), [None, "a"], ((1, 2), [3])):
        assert mx.base.param_text(value) == str(value)
    assert mx.base.param_text(((TWO, np.float32(0.1)), [TWO, None])) == "((2, 0.1), [2, None])"


def test_padding_needs_no_module_that_has_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(np, "compat", raising=False)
    padded = mx.np.pad(mx.np.ones((2,)), (1, 1), "constant")
    assert padded.asnumpy().tolist() == [0, 1, 1, 0]
    assert mx.sym.np.pad(mx.sym.var("x").as_np_ndarray(), (1, 1), "constant") is not None
