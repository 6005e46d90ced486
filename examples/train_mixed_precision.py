"""Gradients and weights in float16, the optimizer's own copy in float32.

Half as many bytes travel. `multi_precision` keeps a float32 copy of each weight in the optimizer,
here on every worker, so that small changes are not lost; the loss is scaled up so that small
gradients are not. Sums are float16, too: with many workers, scale less.
"""

import argparse

import mxnet as mx
from mxnet import autograd, gluon

SCALE = 128.0


class Linear(gluon.Block):
    """By products and a sum, which MXNet computes in float16 on any processor."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        with self.name_scope():
            self.weight = self.params.get("weight", shape=(1, inputs), dtype="float16")
            self.bias = self.params.get("bias", shape=(1,), dtype="float16", init="zeros")

    def forward(self, x: mx.nd.NDArray) -> mx.nd.NDArray:
        weighted = mx.nd.broadcast_mul(x, self.weight.data()).sum(axis=1)
        return mx.nd.broadcast_add(weighted, self.bias.data())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100)
    options = parser.parse_args()

    store = mx.kv.create("dist_sync")
    mx.random.seed(store.rank)
    net = Linear(2)
    net.initialize(mx.init.Normal(0.1))
    trainer = gluon.Trainer(
        net.collect_params(),
        "sgd",
        {"learning_rate": 0.1, "multi_precision": True},
        kvstore=store,
    )
    loss = mx.nd.zeros((1,))
    for _ in range(options.steps):
        x = mx.nd.random.normal(shape=(64, 2))
        y = 2 * x[:, 0] - 3.4 * x[:, 1] + 4.2
        with autograd.record():
            error = net(x.astype("float16")).astype("float32") - y
            loss = (error * error / 2).mean()
            scaled = loss * SCALE
        scaled.backward()
        trainer.step(SCALE * store.num_workers)
    sent = net.weight.grad().dtype.__name__
    print(f"{sent}: worker {store.rank} has a loss of {loss.asscalar():.4f}", flush=True)


if __name__ == "__main__":
    main()
