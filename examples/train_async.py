"""Asynchronous training: no worker waits for another, and steps of a slow one do not slow others.

Each worker's optimizer computes a change, the servers add it to the weights at once, and the worker
goes on with what it gets back. Weights are a few steps old when a gradient is computed, so learning
rates are smaller than with dist_sync. Uneven numbers of batches are no problem.
"""

import argparse
import time

import mxnet as mx
from mxnet import autograd, gluon


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--slow-ms", type=float, default=5, help="that odd workers take longer")
    options = parser.parse_args()

    store = mx.kv.create("dist_async")
    mx.random.seed(store.rank)  # each worker has data of its own
    net = gluon.nn.Dense(1, in_units=2)
    net.initialize()
    trainer = gluon.Trainer(
        net.collect_params(), "sgd", {"learning_rate": 0.05}, kvstore=store, update_on_kvstore=True
    )
    loss_function = gluon.loss.L2Loss()
    for _ in range(options.steps // (1 + store.rank % 2)):
        x = mx.nd.random.normal(shape=(64, 2))
        y = 2 * x[:, 0] - 3.4 * x[:, 1] + 4.2
        with autograd.record():
            loss = loss_function(net(x), y)
        loss.backward()
        trainer.step(64)
        time.sleep(options.slow_ms / 1000 * (store.rank % 2))
    print(f"async: worker {store.rank} has a loss of {loss.mean().asscalar():.4f}", flush=True)


if __name__ == "__main__":
    main()
