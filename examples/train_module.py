"""A small convolutional network with Module.fit on digits; runs on the stock wheel, too."""

import argparse
import hashlib

import digits
import mxnet as mx
import numpy as np


def network() -> mx.sym.Symbol:
    net = mx.sym.var("data")
    net = mx.sym.Convolution(net, num_filter=20, kernel=(5, 5), name="conv1")
    net = mx.sym.Pooling(mx.sym.tanh(net), pool_type="max", kernel=(2, 2), stride=(2, 2))
    net = mx.sym.FullyConnected(mx.sym.Flatten(net), num_hidden=64, name="fc1")
    net = mx.sym.FullyConnected(mx.sym.tanh(net), num_hidden=10, name="fc2")
    return mx.sym.SoftmaxOutput(net, name="softmax")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kvstore", default="dist_sync")
    parser.add_argument("--optimizer", default="sgd", choices=["sgd", "adam"])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", help="write the weights to OUT with the rank put before .npz")
    options = parser.parse_args()

    mx.random.seed(options.seed)
    np.random.seed(options.seed)
    store = mx.kv.create(options.kvstore)
    train_x, train_y, _, _ = digits.load()
    mine = slice(
        store.rank, store.num_workers * options.steps * options.batch_size, store.num_workers
    )
    batches = mx.io.NDArrayIter(train_x[mine], train_y[mine], options.batch_size)
    module = mx.mod.Module(network(), context=mx.cpu())
    arguments = {"learning_rate": 0.05, "momentum": 0.9, "wd": 1e-4}
    if options.optimizer == "adam":
        arguments = {"learning_rate": 0.002}
    module.fit(
        batches,
        kvstore=store,
        optimizer=options.optimizer,
        optimizer_params=arguments,
        initializer=mx.init.Xavier(),
        num_epoch=1,
    )
    weights = {name: value.asnumpy() for name, value in module.get_params()[0].items()}
    digest = hashlib.sha256(b"".join(weights[n].tobytes() for n in sorted(weights))).hexdigest()
    print(f"weights {digest[:16]}", flush=True)
    if options.out:
        np.savez(options.out.replace(".npz", f"{store.rank}.npz"), **weights)


if __name__ == "__main__":
    main()
