"""MXNet's state in a checkpoint, in a process without a job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mxnet as mx
import numpy as np
import pytest

import mxnet_plugins
from pslite_ext.saving import checkpoint


@pytest.fixture(autouse=True)
def as_if_in_a_new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "_folders", set())


def net_of(value: float) -> Any:
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Dense(3, in_units=2), mx.gluon.nn.BatchNorm(in_channels=3))
    net.initialize(mx.init.Constant(value))
    return net


def weights(net: Any) -> list[Any]:
    return [p.data().asnumpy() for p in net.collect_params().values()]


@pytest.mark.parametrize("numpy_arrays", [False, True])
def test_what_was_saved_is_restored(tmp_path: Path, numpy_arrays: bool) -> None:
    with mx.util.np_shape(numpy_arrays), mx.util.np_array(numpy_arrays):
        first, second = net_of(0.5), net_of(0.25)
        saved = mxnet_plugins.checkpoint(tmp_path, every=1, net=first)
        saved.step()
        saved.wait()
        checkpoint._folders.clear()
        assert mxnet_plugins.checkpoint(tmp_path, every=1, net=second).steps == 1
        for one, other in zip(weights(first), weights(second)):
            np.testing.assert_array_equal(one, other)
