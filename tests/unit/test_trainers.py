"""A Trainer's scale follows `step` with a store of ours, and with no other distributed one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import mxnet as mx
import pytest

from mxnet_plugins import trainers
from mxnet_plugins.kvstore import MercuryKVStore


def trainer(store: Any) -> Any:
    """In the middle of training."""
    optimizer = mx.optimizer.SGD(rescale_grad=0.5)
    its = {"_update_on_kvstore": True, "_distributed": True, "_kv_initialized": True}
    return SimpleNamespace(_kvstore=store, _optimizer=optimizer, **its)


def test_the_scale_follows() -> None:
    ours = trainer(object.__new__(MercuryKVStore))
    trainers._check_and_rescale_grad(ours, 0.25)
    assert ours._optimizer.rescale_grad == 0.25


def test_mxnet_s_own_stores_refuse_it_as_ever() -> None:
    others = trainer(mx.kv.create("local"))
    trainers._check_and_rescale_grad(others, 0.5)
    with pytest.raises(UserWarning, match="Possible change in the `batch_size`"):
        trainers._check_and_rescale_grad(others, 0.25)
