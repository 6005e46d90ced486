"""LeNet-5 with gluon.Trainer on digits: an ordinary distributed MXNet script.

It knows nothing of mercury-ps; the same file runs on the stock wheel.
"""

import argparse
import hashlib

import digits
import mxnet as mx
import numpy as np
from mxnet import autograd, gluon


def lenet() -> gluon.nn.HybridSequential:
    net = gluon.nn.HybridSequential()
    net.add(
        gluon.nn.Conv2D(20, kernel_size=5, activation="tanh"),
        gluon.nn.MaxPool2D(2, 2),
        gluon.nn.Conv2D(50, kernel_size=5, activation="tanh"),
        gluon.nn.MaxPool2D(2, 2),
        gluon.nn.Flatten(),
        gluon.nn.Dense(500, activation="tanh"),
        gluon.nn.Dense(10),
    )
    return net


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kvstore", default="dist_sync")
    parser.add_argument("--optimizer", default="sgd", choices=["sgd", "adam"])
    parser.add_argument("--update-on-kvstore", default="none", choices=["0", "1", "none"])
    parser.add_argument("--steps", type=int, default=0, help="stop after so many (default: epochs)")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--learning-rate", type=float, default=0, help="0: the optimizer's usual")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", help="write the weights to OUT with the rank put before .npz")
    options = parser.parse_args()

    mx.random.seed(options.seed)
    np.random.seed(options.seed)
    store = mx.kv.create(options.kvstore)
    train_x, train_y, test_x, test_y = digits.load()
    mine = slice(store.rank, None, store.num_workers)
    train_x, train_y = train_x[mine], train_y[mine]
    per_worker = len(digits.load()[0]) // store.num_workers  # equal numbers of batches

    net = lenet()
    net.initialize(mx.init.Xavier(), ctx=mx.cpu())
    net(mx.nd.array(test_x[:1]))
    arguments = {"learning_rate": 0.05, "momentum": 0.9}
    if options.optimizer == "adam":
        arguments = {"learning_rate": 0.002}
    if options.learning_rate:
        arguments["learning_rate"] = options.learning_rate
    trainer = gluon.Trainer(
        net.collect_params(),
        options.optimizer,
        arguments,
        kvstore=store,
        update_on_kvstore={"0": False, "1": True, "none": None}[options.update_on_kvstore],
    )
    loss_function = gluon.loss.SoftmaxCrossEntropyLoss()
    batches = per_worker // options.batch_size
    steps = options.steps or options.epochs * batches
    for step in range(steps):
        first = step % batches * options.batch_size
        batch = slice(first, first + options.batch_size)
        with autograd.record():
            loss = loss_function(net(mx.nd.array(train_x[batch])), mx.nd.array(train_y[batch]))
        loss.backward()
        trainer.step(options.batch_size * store.num_workers)
        if step % batches == batches - 1:
            print(f"step {step + 1} of {steps}: loss {loss.mean().asscalar():.4f}", flush=True)

    guess = net(mx.nd.array(test_x)).argmax(axis=1).asnumpy()
    weights = [p.data().asnumpy() for p in net.collect_params().values()]
    digest = hashlib.sha256(b"".join(w.tobytes() for w in weights)).hexdigest()
    print(f"accuracy {(guess == test_y).mean():.4f} weights {digest[:16]}", flush=True)
    if options.out:
        path = options.out.replace(".npz", f"{store.rank}.npz")
        np.savez(path, **{str(i): w for i, w in enumerate(weights)})


if __name__ == "__main__":
    main()
