"""A training loop of one's own on the bare store, without gluon's Trainer and without Module.

`announce` tells which tensors come, their names in logs and traces, and how urgent each is: the
greater the priority, the sooner it is sent. The first layer is needed first in the next forward
pass, so it is the most urgent, although its gradient appears last.
"""

import argparse

import mxnet as mx
from mxnet import autograd

import mxnet_plugins

SHAPES = {"hidden_weight": (16, 2), "hidden_bias": (16,), "out_weight": (1, 16), "out_bias": (1,)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=150)
    options = parser.parse_args()

    store = mx.kv.create("dist_sync")
    mxnet_plugins.announce(store, [(name, name, -place) for place, name in enumerate(SHAPES)])
    mx.random.seed(store.rank)
    values = {name: mx.nd.random.normal(0, 0.5, shape) for name, shape in SHAPES.items()}
    for name, value in values.items():
        store.broadcast(name, value, out=value)  # all begin with worker 0's
        value.attach_grad()
    loss = mx.nd.zeros((1,))
    for _ in range(options.steps):
        x = mx.nd.random.normal(shape=(64, 2))
        y = mx.nd.sin(x[:, :1]) + x[:, 1:]
        with autograd.record():
            first = mx.nd.FullyConnected(
                x, values["hidden_weight"], values["hidden_bias"], num_hidden=16
            )
            second = mx.nd.FullyConnected(
                mx.nd.tanh(first), values["out_weight"], values["out_bias"], num_hidden=1
            )
            loss = ((second - y) ** 2).mean()
        loss.backward()
        # Nothing here waits: what reads a gradient waits for its sum, and for no other.
        for place, (name, value) in enumerate(values.items()):
            store.pushpull(name, value.grad, out=value.grad, priority=-place)
        for value in values.values():
            value -= 0.1 / store.num_workers * value.grad
    print(f"own loop: worker {store.rank} has a loss of {loss.asscalar():.4f}", flush=True)


if __name__ == "__main__":
    main()
