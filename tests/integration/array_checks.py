"""Arrays of every kind that MXNet has, where most scripts have plain ones; store_checks.py runs
them."""

from __future__ import annotations

from typing import Any

import mxnet as mx
import numpy as np

from tests.integration.sum_checks import SHAPE, check, equal, everybody


@check
def outputs_in_the_value_s_memory(kv: Any) -> None:
    """Rows, slices and other handles of one array are one variable of the engine."""
    kv.init("row", mx.nd.zeros((4,)))
    rows = mx.nd.ones((3, 4)) * (kv.rank + 1)
    kv.pushpull("row", rows[0], out=rows[1])
    equal(rows[1], everybody(kv))
    kv.pushpull("row", rows[0], out=[rows[2], rows[0]])
    equal(rows, everybody(kv))
    kv.init("handle", mx.nd.zeros(SHAPE))
    value = mx.nd.ones(SHAPE) * (kv.rank + 1)
    kv.pushpull("handle", value, out=value.as_np_ndarray())
    equal(value, everybody(kv))
    kv.pushpull("handle", [value, value[:]], out=[value[:], value])
    equal(value, 2 * kv.num_workers * everybody(kv))


def in_onednn_s_layout() -> Any:
    """A convolution's output stays in the layout that oneDNN chose until somebody reads it."""
    random = np.random.RandomState(5)
    data, weight = mx.nd.array(random.rand(2, 16, 8, 8)), mx.nd.array(random.rand(32, 16, 3, 3))
    return mx.nd.Convolution(data, weight, no_bias=True, kernel=(3, 3), num_filter=32)


@check
def layouts_of_onednn(kv: Any) -> None:
    one = in_onednn_s_layout().asnumpy()
    out = mx.nd.zeros(one.shape)
    kv.init("conv", in_onednn_s_layout())
    for target in (out, in_onednn_s_layout()):
        kv.pull("conv", out=target)
        equal(target, one)
    for value in (in_onednn_s_layout(), in_onednn_s_layout() * 1):
        kv.push("conv", value)
        kv.pull("conv", out=out)
        equal(out, one * kv.num_workers, 1e-6)
        equal(value, one)
    for target in (mx.nd.zeros(one.shape), in_onednn_s_layout()):
        kv.pushpull("conv", in_onednn_s_layout(), out=target)
        equal(target, one * kv.num_workers, 1e-6)
    value = in_onednn_s_layout()
    kv.pushpull("conv", value)
    equal(value, one * kv.num_workers, 1e-6)
    kv.init("half", mx.nd.zeros((1, *one.shape[1:])))
    kv.pushpull("half", in_onednn_s_layout()[1:], out=out[:1])
    equal(out[0], one[1] * kv.num_workers, 1e-6)


@check
def numpy_arrays(kv: Any) -> None:
    kv.init("np", mx.np.zeros(SHAPE))
    value, out = mx.np.ones(SHAPE) * (kv.rank + 1), mx.np.zeros(SHAPE)
    kv.push("np", value)
    kv.pull("np", out=out)
    equal(out, everybody(kv))
    kv.pushpull("np", value, out=[out, mx.nd.zeros(SHAPE)])
    equal(out, everybody(kv))
    kv.pushpull("np", value)
    equal(value, everybody(kv))


@check
def trainers_of_numpy_arrays(kv: Any) -> None:
    mx.npx.set_np()
    try:
        for update_on_kvstore in (None, True, False):
            net = mx.gluon.nn.Dense(3, in_units=4)
            net.initialize(mx.init.Constant(0.5 + kv.rank))
            trainer = mx.gluon.Trainer(
                net.collect_params(),
                "sgd",
                {"learning_rate": 0.01, "momentum": 0.9},
                kvstore="dist_sync",
                update_on_kvstore=update_on_kvstore,
            )
            for _ in range(2):
                with mx.autograd.record():
                    loss = net(mx.np.ones((2, 4))).sum()
                loss.backward()
                trainer.step(2 * kv.num_workers)
            assert isinstance(net.weight.data(), mx.np.ndarray)
            equal(net.weight.data(), 0.5 - 0.01 - 0.019, 1e-6)
    finally:
        mx.npx.reset_np()
