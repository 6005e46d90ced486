"""Workers of an MLfabric job under MXNet: each way to train; what comes out, as a file.

fabric_gluon.py FOLDER WAY STEPS [OPTIMIZER MOMENTUM]
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import mxnet as mx
import numpy as np
import pytest
from mxnet import autograd, gluon

import mxnet_plugins

FOLDER, WAY, STEPS = sys.argv[1], sys.argv[2], int(sys.argv[3])
OPTIMIZER, MOMENTUM = (sys.argv[4], float(sys.argv[5])) if len(sys.argv) > 4 else ("sgd", 0.0)
RANK = int(os.environ["DMLC_TASK_ID"])
X = np.random.RandomState(1).normal(size=(16, 3)).astype(np.float32)
Y = (X @ np.array([[2.0], [-3.4], [1.5]], np.float32))[:, 0]
RATE = 0.05 / int(os.environ["DMLC_NUM_WORKER"])
SETTINGS = {"learning_rate": RATE, **({"momentum": MOMENTUM} if MOMENTUM else {})}


def network(value: float) -> Any:
    net = gluon.nn.HybridSequential()
    # Its running means are parameters without a gradient.
    net.add(gluon.nn.Dense(4, in_units=3), gluon.nn.BatchNorm(), gluon.nn.Dense(1, in_units=4))
    net.initialize(mx.init.Uniform(0.1))
    net(mx.nd.array(X))
    for number, parameter in enumerate(net.collect_params().values()):
        if parameter.grad_req != "null":
            random = np.random.RandomState(number)
            parameter.set_data(mx.nd.array(value + random.normal(size=parameter.shape)))
    return net


def train(net: Any, store: Any, workers: int = 1, **extra: Any) -> list[Any]:
    """Alone, as so many workers would that have the same data."""
    if store is not None:
        extra["kvstore"] = store
    settings = {**SETTINGS, "learning_rate": RATE * workers}
    trainer = gluon.Trainer(net.collect_params(), OPTIMIZER, settings, **extra)
    for _ in range(STEPS):
        with autograd.record():
            loss = gluon.loss.L2Loss()(net(mx.nd.array(X)), mx.nd.array(Y))
        loss.backward()
        trainer.step(len(X))
    return [p.data().asnumpy() for p in net.collect_params().values() if p.grad_req != "null"]


def by_gluon() -> list[Any]:
    store = mx.kv.create("dist_async")
    # The first worker's values count.
    return train(network(1.0 if store.rank == 0 else 1.2), store)


def by_steps() -> list[Any]:
    return train(network(1.0), mx.kv.create("dist_sync"))


def by_sums() -> list[Any]:
    """The store sums, and each worker's Trainer has the optimizer."""
    return train(network(1.0), mx.kv.create("dist_sync"), update_on_kvstore=False)


def by_module() -> list[Any]:
    data = mx.io.NDArrayIter(X, Y, batch_size=len(X), label_name="label")
    out = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=1, name="fc")
    net = mx.sym.LinearRegressionOutput(out, mx.sym.var("label"), name="out")
    module = mx.mod.Module(net, label_names=("label",))
    module.fit(
        data,
        kvstore="dist_async",
        optimizer=OPTIMIZER,
        optimizer_params=tuple(SETTINGS.items()),
        initializer=mx.init.Constant(1.0 + 4 * RANK),
        num_epoch=STEPS,
        eval_metric="mse",
    )
    return [value.asnumpy() for value in module.get_params()[0].values()]


def by_hand() -> list[Any]:
    """Two keys are trained and one is not, which shows in the second step only."""
    store = mx.kv.create("dist_async")
    weights = [mx.nd.ones((2, 2)) * (key + RANK) for key in range(3)]
    store.init([0, 1, 2], weights)
    store.set_optimizer(mx.optimizer.create(OPTIMIZER, **SETTINGS))
    store.pull([0, 1, 2], weights)
    for _ in range(STEPS):
        for key in (0, 1):
            store.push(key, mx.nd.ones((2, 2)) * (key + 1), priority=-key)
        store.pull([0, 1], weights[:2])
    for key in (0, 1):  # a step that nothing follows is sent at the end
        store.push(key, mx.nd.ones((2, 2)))
    store.pull([0, 1, 2], weights)
    return [weight.asnumpy() for weight in weights]


def by_mistake() -> list[Any]:
    """What is refused is not in the store. Half a step is pushed when the script fails; a second
    store is one too many."""
    store, other = mx.kv.create("dist_async"), mx.kv.create("dist_async")
    for one in (store, other):
        whole = mx.nd.ones((2,), dtype="int32")
        with pytest.raises(mx.MXNetError, match="tensor '1' .* is int32"):
            one.init([0, 1], [mx.nd.ones((2,)), whole])
        with pytest.raises(mx.MXNetError, match="key 1 has shape"):
            one.broadcast([0, 1], [mx.nd.ones((2,))] * 2, [mx.nd.ones((2,)), mx.nd.ones((3,))])
        one.init([0, 1], [mx.nd.ones((2,)), mx.nd.ones((2,))])
        one.set_optimizer(mx.optimizer.create("sgd"))
    store.push([0, 1], [mx.nd.ones((2,)), mx.nd.ones((2,))])
    store.push(0, mx.nd.ones((2,)))
    other.push(0, mx.nd.ones((2,)))
    return []


def main() -> None:
    ways = {
        "gluon": by_gluon,
        "steps": by_steps,
        "sums": by_sums,
        "module": by_module,
        "hand": by_hand,
        "mistake": by_mistake,
    }
    weights = ways[WAY]()
    said = {"weights": [w.tolist() for w in weights], "stats": mxnet_plugins.stats()}
    if WAY in ("gluon", "steps", "sums"):
        workers = 1 if WAY == "gluon" else int(os.environ["DMLC_NUM_WORKER"])
        said["alone"] = [w.tolist() for w in train(network(1.0), None, workers)]
    with open(os.path.join(FOLDER, f"worker_{RANK}.json"), "w", encoding="utf-8") as file:
        json.dump(said, file)


if __name__ == "__main__":
    main()
