"""Run by every worker of test_capture.py: two steps of LeNet-5, seeded, keys in the net's order.

The network is that of examples/, which whoever starts this puts on the path.
"""

from __future__ import annotations

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from train_lenet import lenet

STEPS = 2
BATCH = 8


def main() -> None:
    mx.random.seed(1)
    store = mx.kv.create("dist_sync")
    if store.rank == 0:
        store.send_command_to_servers(1, "hello")
    images = np.random.RandomState(store.rank).rand(STEPS, BATCH, 1, 28, 28).astype("float32")
    labels = mx.nd.array(np.arange(BATCH) % 10)
    net = lenet()
    net.initialize(mx.init.Xavier())
    net(mx.nd.array(images[0]))
    parameters = list(net.collect_params().values())  # as a dict they would be sorted by name
    trainer = gluon.Trainer(
        parameters, "sgd", {"learning_rate": 0.1}, kvstore=store, update_on_kvstore=False
    )
    # Before the first gradients, which would else be pushed while initial values still come.
    trainer._init_kvstore()
    trainer._init_params()
    mx.nd.waitall()
    loss_function = gluon.loss.SoftmaxCrossEntropyLoss()
    for batch in images:
        with autograd.record():
            loss = loss_function(net(mx.nd.array(batch)), labels)
        loss.backward()
        trainer.step(BATCH * store.num_workers)
        loss.wait_to_read()
    mx.nd.waitall()


if __name__ == "__main__":
    main()
