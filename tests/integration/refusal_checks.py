"""Calls that a store refuses change nothing: neither values, nor what this worker's next call is
part of; store_checks.py runs them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import mxnet as mx
import pytest

from tests.integration.sum_checks import DETERMINISTIC, SHAPE, check, equal


def refuses(text: str, *calls: Callable[[], Any]) -> None:
    for call in calls:
        with pytest.raises(mx.MXNetError, match=text) as raised:
            call()
        assert isinstance(raised.value, ValueError)
        assert "\n" not in str(raised.value)


def refuse_several_keys(kv: Any) -> None:
    """One of each call fits."""
    one, wrong, by_rows = mx.nd.ones(SHAPE), mx.nd.ones((9,)), mx.nd.ones(SHAPE)
    far, out = {"priority": 2**31}, mx.nd.ones(SHAPE)
    for call in (kv.push, kv.pushpull):
        refuses("'b' has shape", partial(call, ["a", "b"], [one, wrong]))
        refuses("'zz' is not in", partial(call, ["a", "zz"], [one, one]))
        refuses("'rows' is row_sparse", partial(call, ["a", "rows"], [one, by_rows]))
        refuses("'a': priority", partial(call, ["a", "b"], [one, one], **far))
        mixed = [[one], [one.tostype("row_sparse"), one]]
        refuses("'b': one array is row_sparse", partial(call, ["a", "b"], mixed))
    refuses("'b' has shape", partial(kv.pushpull, ["a", "b"], [one, one], out=[out, wrong]))
    refuses("'b' has shape", partial(kv.pull, ["a", "b"], out=[out, wrong]))
    refuses("'zz' is not in", partial(kv.pull, ["a", "zz"], out=[out, one]))
    zeros = mx.nd.sparse.zeros("row_sparse", SHAPE)
    ids = [mx.nd.array([0]), mx.nd.array([3])]
    pull_rows = partial(kv.row_sparse_pull, ["rows", "a"])
    refuses("'a' has 3 rows", partial(pull_rows, [zeros, zeros], row_ids=ids))
    refuses("'a': row_sparse_pull needs", partial(pull_rows, [zeros, by_rows], row_ids=ids[:1] * 2))
    for array in (one, by_rows, out):
        equal(array, 1)
    equal(zeros, 0)


@check
def several_keys_of_which_one_does_not_fit(kv: Any) -> None:
    """On one worker, and its sums stay those of the others."""
    kv = mx.kv.create("dist_sync")
    rows = mx.nd.zeros(SHAPE).tostype("row_sparse")
    kv.init(["a", "b", "rows"], [mx.nd.zeros(SHAPE), mx.nd.zeros(SHAPE), rows])
    outs = [mx.nd.ones(SHAPE) for _ in range(2)]
    for step in range(1, 4):
        if kv.rank == 1:
            refuse_several_keys(kv)
        kv.push(["a", "b"], [mx.nd.ones(SHAPE) * step] * 2)
        kv.pull(["a", "b"], out=outs)
        for out in outs:
            equal(out, step * kv.num_workers)


@check
def keys_that_come_with_one_that_cannot(kv: Any) -> None:
    one = mx.nd.ones(SHAPE)
    new, wrong = ["new", "cannot"], [one, one.astype("bool")]
    refuses("'cannot' has a bool array", partial(kv.init, new, wrong))
    refuses("'cannot' has a bool array", partial(kv.broadcast, new, wrong, out=[one, one]))
    refuses("'cannot' has shape", partial(kv.broadcast, new, [one, one], out=[one, mx.nd.ones(9)]))
    other = mx.nd.ones((2, 5))  # of another shape than what was refused
    kv.init(new, [other, one])
    kv.pushpull("new", other)
    equal(other, kv.num_workers)


@check
def an_output_that_does_not_fit(kv: Any) -> None:
    """The optimizer has not run."""
    for name in ("dist_sync",) if DETERMINISTIC else ("dist_sync", "dist_async"):
        kv = mx.kv.create(name)
        kv.init("w", mx.nd.zeros(SHAPE))
        kv.set_optimizer(mx.optimizer.create("test", rescale_grad=1))
        one, out = mx.nd.ones(SHAPE), mx.nd.zeros(SHAPE)
        if kv.rank == 1:
            refuses("has shape", partial(kv.pushpull, "w", one, out=mx.nd.ones((9,))))
        kv.pushpull("w", one, out=out)
        mx.nd.waitall()
        kv.barrier()
        kv.pull("w", out=out)
        equal(out, kv.num_workers)


@check
def arrays_of_several_types(kv: Any) -> None:
    """Of one key, as of one array: they become what the key is."""
    kv = mx.kv.create("dist_sync")
    one, out = mx.nd.ones(SHAPE), mx.nd.zeros(SHAPE)
    rows, more = one.tostype("row_sparse"), mx.nd.sparse.zeros("row_sparse", SHAPE)
    kv.init(["dense", "rows"], [out, more])
    kv.push("dense", [one, one.astype("float64")])
    kv.pull("dense", out=out)
    equal(out, 2 * kv.num_workers)
    kv.push("rows", [rows, rows.astype("float64")])
    kv.row_sparse_pull("rows", out=more, row_ids=mx.nd.arange(SHAPE[0]))
    equal(more, 2 * kv.num_workers)


@check
def thresholds_for_changes_of_weights(kv: Any) -> None:
    """Whichever comes first, the optimizer or the compression."""
    if DETERMINISTIC:
        return
    text = "bit compression is for gradients, .*: compress to bf16 or int8, or use 'dist_sync'"
    sgd = mx.optimizer.SGD(learning_rate=0.5, wd=0)
    for kind in ("1bit", "2bit"):
        params = {"type": kind, "threshold": 0.5}
        kv = mx.kv.create("dist_async")
        kv.set_gradient_compression(params)
        refuses(text, partial(kv.set_optimizer, sgd), partial(kv._set_updater, lambda *_: None))
        kv.init("w", mx.nd.zeros(SHAPE))
        kv.set_gradient_compression({"type": "bf16"})
        kv.set_optimizer(sgd)
        refuses(text, partial(kv.set_gradient_compression, params))
        kv.push("w", mx.nd.ones(SHAPE) * 0.25)  # still as bf16
        mx.nd.waitall()
        kv.barrier()
        out = mx.nd.zeros(SHAPE)
        kv.pull("w", out=out)
        equal(out, -0.125 * kv.num_workers)
