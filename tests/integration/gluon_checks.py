"""What MXNet's own distributed tests expect of a store: gluon's parameters of all kinds, calls
inside autograd.record(), and refusals that are MXNetErrors; store_checks.py runs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mxnet as mx
import numpy as np
import pytest
from mxnet.contrib.amp.loss_scaler import LossScaler

from tests.integration.sum_checks import SHAPE, check, equal, everybody


def parameter(stype: str = "default", dtype: str = "float32", shape: Any = (4, 2)) -> Any:
    """A dictionary of one parameter that begins at 0, and its gradients' kind."""
    parameters = mx.gluon.ParameterDict()
    grad_stype = {"grad_stype": stype} if stype != "default" else {}
    x = parameters.get("x", shape=shape, lr_mult=1.0, stype=stype, dtype=dtype, **grad_stype)
    parameters.initialize(ctx=[mx.cpu(0), mx.cpu(1)], init="zeros")
    return parameters, x


@check
def nothing_of_ours_is_recorded(kv: Any) -> None:
    """A store may be used inside record(), with arrays that are part of what is recorded."""
    kv = mx.kv.create("dist_sync")
    kv.init("dense", mx.nd.zeros(SHAPE))
    kv.init("rows", mx.nd.ones((6, 3)).tostype("row_sparse"))
    weight = mx.nd.ones(SHAPE) * (kv.rank + 1)
    weight.attach_grad()
    rows = mx.nd.sparse.zeros("row_sparse", (6, 3))
    rows.attach_grad(stype="row_sparse")
    out = mx.nd.zeros(SHAPE)
    out.attach_grad()
    with mx.autograd.record():
        loss = (weight * weight).sum()
        kv.row_sparse_pull("rows", out=rows, row_ids=mx.nd.array([1, 4]))
        kv.push("dense", weight)
        kv.pull("dense", out=out)
        kv.pushpull("dense", [weight, weight.copy()], out=out)
        kv.broadcast("more", weight, out=out)
        assert mx.autograd.is_recording()
        assert mx.autograd.is_training()
    loss.backward()
    equal(weight.grad, 2 * (kv.rank + 1))
    equal(out, 1)
    expected = np.zeros((6, 3))
    expected[[1, 4]] = 1
    equal(rows, expected)
    with mx.autograd.record(train_mode=False):
        kv.pushpull("dense", weight, out=out)
        assert not mx.autograd.is_training()
    equal(out, everybody(kv))


@check
def a_step_of_a_trainer(kv: Any) -> None:
    for update_on_kvstore in (None, True, False):
        parameters, x = parameter(shape=(10, 1))
        trainer = mx.gluon.Trainer(
            parameters,
            "sgd",
            {"learning_rate": 1.0, "momentum": 0.5},
            kvstore=mx.kv.create("dist_sync"),
            update_on_kvstore=update_on_kvstore,
        )
        with mx.autograd.record():
            for w in x.list_data():
                (w + 1).backward()
        trainer.step(1)
        sum_of_gradients = 2 * kv.num_workers  # two devices each
        for w in x.list_data():
            equal(w, -sum_of_gradients)
        x.lr_mult = 0.5
        with mx.autograd.record():
            for w in x.list_data():
                (w + 1).backward()
        trainer.step(1)
        for w in x.list_data():
            # Its momentum, half of the first step, and half of a step.
            equal(w, -(1 + 0.5 + 0.5) * sum_of_gradients)


@check
def a_step_of_another_batch_size(kv: Any) -> None:
    parameters, x = parameter()
    store = mx.kv.create("dist_sync")
    options = {"learning_rate": 1.0}
    trainer = mx.gluon.Trainer(parameters, "sgd", options, kvstore=store, update_on_kvstore=True)
    for batch_size in (1, 4):
        with mx.autograd.record():
            for w in x.list_data():
                (w + 1).backward()
        trainer.step(batch_size)
    for w in x.list_data():
        equal(w, -(1 + 1 / 4) * 2 * kv.num_workers)


@check
def a_trainer_of_other_types(kv: Any) -> None:
    for dtype in ("float16", "float32", "float64"):
        for multi_precision in (False, True):
            parameters, x = parameter(dtype=dtype)
            options = {"learning_rate": 1.0, "multi_precision": multi_precision}
            store = mx.kv.create("dist_sync")
            trainer = mx.gluon.Trainer(parameters, "sgd", options, kvstore=store)
            with mx.autograd.record():
                for w in x.list_data():
                    (w + 1).backward()
            trainer.step(1)
            for w in x.list_data():
                assert w.dtype == np.dtype(dtype)
                equal(w, -2 * kv.num_workers)


@check
def a_trainer_of_sparse_parameters(kv: Any) -> None:
    parameters, x = parameter(stype="row_sparse")
    store = mx.kv.create("dist_sync")
    trainer = mx.gluon.Trainer(parameters, "sgd", {"learning_rate": 1.0}, kvstore=store)
    rows = mx.nd.arange(0, 4)
    for step in range(2):
        with mx.autograd.record():
            for device in (mx.cpu(0), mx.cpu(1)):
                w = x.row_sparse_data(rows.as_in_context(device))
                (w + 1).backward()
        trainer.step(1)
        all_rows = x.list_row_sparse_data(rows)
        for w in all_rows:
            equal(w, -2 * kv.num_workers * (step + 1))


@check
def refusals_are_mxnet_s(kv: Any) -> None:
    kv = mx.kv.create("dist_sync")
    kv.init("rows", mx.nd.ones((2, 2)).tostype("row_sparse"))
    out = mx.nd.ones((2, 2)).tostype("row_sparse")
    calls: list[Callable[[], Any]] = [
        lambda: kv.pull("rows", out=out, ignore_sparse=False),
        lambda: kv.push("rows", mx.nd.ones((2, 2))),
        lambda: kv.row_sparse_pull("rows", out=out, row_ids=mx.nd.array([2])),
        lambda: kv.row_sparse_pull("rows", out=out),
        lambda: kv.is_capable("magic"),
    ]
    for call in calls:
        with pytest.raises(mx.MXNetError):
            call()
    parameters, x = parameter(stype="row_sparse")
    trainer = mx.gluon.Trainer(parameters, "sgd", {"learning_rate": 0.1}, kvstore=kv)
    x.row_sparse_data(mx.nd.arange(0, 4))
    assert trainer._update_on_kvstore
    with pytest.raises(RuntimeError, match="distributed KVStore"):
        trainer._reset_kvstore()


@check
def a_scaler_of_losses_with_an_optimizer_in_the_store(kv: Any) -> None:
    """What amp.init_trainer does; a step that overflows could not be left out."""
    parameters, x = parameter()
    trainer = mx.gluon.Trainer(parameters, "sgd", {"learning_rate": 0.1}, kvstore="dist_sync")
    trainer._amp_loss_scaler = LossScaler()
    with pytest.raises(mx.MXNetError, match="create the Trainer with update_on_kvstore=False"):
        trainer.step(1)
    for data in x.list_data():
        equal(data, 0)
