"""Optimizers on every worker: what they come to, and those that a store refuses; store_checks.py
runs them."""

from __future__ import annotations

import os
import tempfile
from typing import Any

import mxnet as mx
import numpy as np
import pytest

from tests.integration.sum_checks import DETERMINISTIC, SHAPE, check, equal


@check
def multi_precision(kv: Any) -> None:
    kv = mx.kv.create("dist_sync")
    kv.init("mp", mx.nd.ones(SHAPE, dtype="float16"))
    kv.set_optimizer(mx.optimizer.SGD(learning_rate=0.25, multi_precision=True))
    out = mx.nd.zeros(SHAPE, dtype="float16")
    kv.pushpull("mp", mx.nd.ones(SHAPE, dtype="float16"), out=out)
    equal(out, 1 - 0.25 * kv.num_workers)


@check
def row_sparse_with_other_optimizers(kv: Any) -> None:
    """One row is 0, and must be there all the same."""
    rows = (5, 2)
    gradient, first = np.zeros(rows, np.float32), np.ones(rows, np.float32)
    gradient[[1, 3]], first[2] = 1, 0
    for name in ("test", "sgd", "adam", "adagrad", "ftrl"):
        kv = mx.kv.create("dist_sync")
        kv.init("r", mx.nd.array(first).tostype("row_sparse"))
        kv.set_optimizer(mx.optimizer.create(name))
        reference = mx.nd.array(first)
        if name == "ftrl":  # as on stock's servers: with a dense weight, gradients are dense
            reference = mx.nd.sparse.row_sparse_array((first, np.arange(5)), shape=rows)
        update = mx.optimizer.get_updater(mx.optimizer.create(name))
        outs = [mx.nd.sparse.zeros("row_sparse", rows) for _ in range(2)]
        for _ in range(3):
            kv.push("r", mx.nd.array(gradient).tostype("row_sparse"))
            update(0, mx.nd.array(gradient * kv.num_workers).tostype("row_sparse"), reference)
            kv.row_sparse_pull("r", out=outs, row_ids=[mx.nd.arange(5), mx.nd.array([3, 1, 1])])
            equal(outs[0], reference.asnumpy(), 1e-6)
            assert outs[1].indices.asnumpy().tolist() == [1, 3]


@check
def rows_are_learnt_as_when_they_were_pushed(kv: Any) -> None:
    """Worker 0 asks for them at once, the others when the rate and the scale have changed."""
    rows = (4, 2)

    def optimizer() -> Any:
        schedule = mx.lr_scheduler.FactorScheduler(1, 0.5, base_lr=1.0)
        return mx.optimizer.SGD(learning_rate=1.0, momentum=0.5, lr_scheduler=schedule)

    kv = mx.kv.create("dist_sync")
    kv.init(["d", "r"], [mx.nd.ones(rows), mx.nd.ones(rows).tostype("row_sparse")])
    ours, twin = optimizer(), optimizer()
    kv.set_optimizer(ours)
    update = mx.optimizer.get_updater(twin)
    dense, sparse = mx.nd.ones(rows), mx.nd.ones(rows)
    out = mx.nd.sparse.zeros("row_sparse", rows)
    for step in range(4):
        ours.rescale_grad = twin.rescale_grad = 1 / (step + 1)
        kv.push("d", mx.nd.ones(rows))
        update("d", mx.nd.ones(rows) * kv.num_workers, dense)
        kv.push("r", mx.nd.ones(rows).tostype("row_sparse"))
        update("r", (mx.nd.ones(rows) * kv.num_workers).tostype("row_sparse"), sparse)
        assert ours.num_update == twin.num_update == step + 1
        if kv.rank == 0:
            kv.row_sparse_pull("r", out=out, row_ids=mx.nd.arange(4))
    ours.rescale_grad = 100
    with tempfile.TemporaryDirectory() as folder:
        kv.save_optimizer_states(os.path.join(folder, "states"))
    equal(kv._updater.states["r"], update.states["r"].asnumpy(), 1e-6)
    kv.row_sparse_pull("r", out=out, row_ids=mx.nd.arange(4))
    equal(out, sparse.asnumpy(), 1e-6)


@check
def asynchronous_optimizer(kv: Any) -> None:
    if DETERMINISTIC:
        return
    kv = mx.kv.create("dist_async")
    kv.init("y", mx.nd.zeros(SHAPE))
    kv.set_optimizer(mx.optimizer.SGD(learning_rate=0.5))
    out = mx.nd.zeros(SHAPE)
    for _ in range(4):
        kv.pushpull("y", mx.nd.ones(SHAPE), out=out)
    out.wait_to_read()
    kv._barrier()
    kv.pushpull("y", mx.nd.zeros(SHAPE), out=out)
    equal(out, -0.5 * 4 * kv.num_workers)


@check
def who_only_pulls_gets_what_the_others_push(kv: Any) -> None:
    if DETERMINISTIC:
        return
    kv = mx.kv.create("dist_async")
    rows = mx.nd.zeros(SHAPE).tostype("row_sparse")
    kv.init(["whole", "rows"], [mx.nd.zeros(SHAPE), rows])
    kv.set_optimizer(mx.optimizer.SGD(learning_rate=1.0, wd=0))
    out, every = mx.nd.zeros(SHAPE), mx.nd.arange(SHAPE[0])

    def pull() -> None:
        kv.pull("whole", out=out)
        kv.row_sparse_pull("rows", out=rows, row_ids=every)
        mx.nd.waitall()

    pull()
    kv._barrier()
    if kv.rank > 0:
        for _ in range(2):
            kv.push("whole", mx.nd.ones(SHAPE))
            kv.push("rows", mx.nd.ones(SHAPE).tostype("row_sparse"))
        pull()
    kv._barrier()
    pull()
    equal(out, -2 * (kv.num_workers - 1))
    equal(rows, -2 * (kv.num_workers - 1))


def refuses(text: str, call: Any, *arguments: Any) -> None:
    with pytest.raises(mx.MXNetError, match=text) as raised:
        call(*arguments)
    assert isinstance(raised.value, ValueError)
    assert "\n" not in str(raised.value)


@check
def optimizers_that_would_undo_the_others(kv: Any) -> None:
    kv = mx.kv.create("dist_sync")
    refuses("SGLD draws noise of its own", kv.set_optimizer, mx.optimizer.SGLD())
    if DETERMINISTIC:
        return
    kv, other = mx.kv.create("dist_async"), mx.kv.create("dist_async")
    for wrong in (mx.optimizer.Ftrl(), mx.optimizer.FTML()):
        refuses("computes weights from this worker's gradients", kv.set_optimizer, wrong)
    master = mx.optimizer.SGD(multi_precision=True)
    half, value = mx.nd.ones(SHAPE, dtype="float16"), mx.nd.ones(SHAPE)
    kv.init("half", half)
    refuses("tensor 'half' is float16: multi_precision", kv.set_optimizer, master)
    other.set_optimizer(master)
    refuses("tensor 'half' is float16: multi_precision", other.init, "half", half)
    other.init("single", value)
    other.pushpull("single", value)
    kv.set_optimizer(mx.optimizer.SGD())
    kv.pushpull("half", half)
    mx.nd.waitall()
