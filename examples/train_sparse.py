"""A large embedding of which each batch uses a few rows: only those travel.

SparseEmbedding keeps its weight as row_sparse: a worker pulls the rows of its batch before it
computes, and pushes gradients of these rows alone. All rows together may be larger than what a step
could send.
"""

import argparse

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

WORDS_OF_A_TEXT = 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--words", type=int, default=10000)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--batch-size", type=int, default=32)
    options = parser.parse_args()

    store = mx.kv.create("dist_sync")
    mx.random.seed(1)  # the same initial weights everywhere
    words = gluon.contrib.nn.SparseEmbedding(options.words, 16)
    classify = gluon.nn.Dense(2, in_units=16)
    words.initialize(mx.init.Normal(0.1))
    classify.initialize(mx.init.Xavier())
    parameters = words.collect_params()
    parameters.update(classify.collect_params())
    # Reading rows begins the job before the first step says a batch size, so it is said here.
    rescale = 1 / (options.batch_size * store.num_workers)
    options_of_sgd = {"learning_rate": 2.0, "rescale_grad": rescale}
    trainer = gluon.Trainer(parameters, "sgd", options_of_sgd, kvstore=store)
    loss_function = gluon.loss.SoftmaxCrossEntropyLoss()
    draw = np.random.RandomState(100 + store.rank)
    loss = mx.nd.zeros((1,))
    for _ in range(options.steps):
        # Texts of class 1 use words with odd numbers more often.
        label = draw.randint(0, 2, options.batch_size)
        shape = (options.batch_size, WORDS_OF_A_TEXT)
        even = draw.zipf(1.5, shape).clip(1, options.words // 2 - 1) * 2
        odd = (draw.rand(*shape) < 0.3 + 0.4 * label[:, None]).astype(int)
        text = mx.nd.array(even + odd)
        with autograd.record():
            loss = loss_function(classify(words(text).mean(axis=1)), mx.nd.array(label))
        loss.backward()
        trainer.step(1)
    print(f"sparse: worker {store.rank} has a loss of {loss.mean().asscalar():.4f}", flush=True)


if __name__ == "__main__":
    main()
