"""MXNet's state in a checkpoint, in a process without a job."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import mxnet as mx
import numpy as np
import pytest

import mxnet_plugins
from pslite_ext.errors import InvalidArgumentError
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


class Own:
    def __init__(self, state: Any) -> None:
        self.state = state

    def state_dict(self) -> Any:
        return self.state

    def load_state_dict(self, state: Any) -> None:
        self.state = state


def test_what_would_come_back_as_something_else_is_refused(tmp_path: Path) -> None:
    own = Own({"seen": [float("nan"), {"a": 1}], "best": None})
    saved = mxnet_plugins.checkpoint(tmp_path, every=1, net=net_of(0.5), own=own)
    saved.step()
    for state in ({"seen": {1: 0.5}}, {"at": [(1, 2)]}):
        own.state = state
        with pytest.raises(
            InvalidArgumentError, match="own's state_dict holds a tuple, or a key that"
        ):
            saved.step()
    saved.wait()


def momenta(trainer: Any) -> list[Any]:
    updater = trainer._kvstore._updater if trainer._update_on_kvstore else trainer._updaters[0]
    return [state.asnumpy() for _, state in sorted(updater.states.items())]


def trainer_of(net: Any, on_store: bool) -> Any:
    parameters = net.collect_params()
    options = {"learning_rate": 0.1, "momentum": 0.9}
    store = mx.kv.create("local")
    return mx.gluon.Trainer(parameters, "sgd", options, kvstore=store, update_on_kvstore=on_store)


@pytest.mark.parametrize("on_store", [False, True])
def test_a_trainer_s_state_needs_no_room_for_temporary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_store: bool
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    nets = [net_of(0.5), net_of(0.25)]
    first, second = (trainer_of(net, on_store) for net in nets)
    saved = mxnet_plugins.checkpoint(tmp_path / "run", every=1, net=nets[0], trainer=first)
    for _ in range(2):
        with mx.autograd.record():
            loss = nets[0](mx.nd.ones((4, 2))).sum()
        loss.backward()
        first.step(4)
        saved.step()
    saved.wait()
    checkpoint._folders.clear()
    again = mxnet_plugins.checkpoint(tmp_path / "run", every=1, net=nets[1], trainer=second)
    assert again.steps == 2
    assert len(momenta(first)) == len(momenta(second)) > 0
    for one, other in zip(momenta(first), momenta(second)):
        np.testing.assert_array_equal(one, other)
    assert second._optimizer.num_update == first._optimizer.num_update == 2
