"""One process of a job that trains a real network on digits, whatever its role.

Its argument is a `Config` as JSON, whose tensors name the network: {"model": "lenet5"}. A worker
speaks as worker.py does. Servers and the scheduler run, and end, inside `import mxnet`. examples/
must be on the path: LeNet-5 and the digits are there.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

from scripts.lab.workloads.job_config import Config
from scripts.lab.workloads.measurement import say, usage

LENET, RESNET = "lenet5", "resnet50"
BATCH = {LENET: 32, RESNET: 2}
CLASSES = 1000  # of ResNet-50, as its authors have it, so that it has all of its bytes


def network(name: str) -> Any:
    if name == LENET:
        from train_lenet import lenet

        return lenet()
    return gluon.model_zoo.vision.resnet50_v1(classes=CLASSES)


def pictures(name: str) -> tuple[Any, Any]:
    """Digits and what they are; for ResNet-50 of 56 x 56 points in three colours."""
    import digits

    images, labels, _, _ = digits.load()
    if name == RESNET:
        images = images.repeat(2, axis=2).repeat(2, axis=3).repeat(3, axis=1)
    return images, labels


def main() -> None:
    config = Config(**json.loads(sys.argv[1]))
    name = config.tensors["model"]
    mx.random.seed(1)
    np.random.seed(1)
    store = mx.kv.create(config.store)
    images, labels = pictures(name)
    images, labels = (
        images[store.rank :: store.num_workers],
        labels[store.rank :: store.num_workers],
    )
    batch = BATCH[name]
    net = network(name)
    net.initialize(mx.init.Xavier())
    net(mx.nd.array(images[:batch]))  # now it knows its shapes
    # As a dict they would be sorted by name: urgency is to follow the network's order.
    parameters = list(net.collect_params().values())
    arguments = {"learning_rate": 0.01}
    trainer = gluon.Trainer(parameters, "sgd", arguments, kvstore=store, update_on_kvstore=False)
    # Before the first gradients, which would else be pushed while initial values still come.
    trainer._init_kvstore()
    trainer._init_params()
    mx.nd.waitall()
    store._barrier()
    say("started", **usage())
    loss_function = gluon.loss.SoftmaxCrossEntropyLoss()
    batches = len(labels) // batch
    losses = []
    for step in range(config.warmup + config.rounds + 1):
        first = step % batches * batch
        chosen = slice(first, first + batch)
        with autograd.record():
            loss = loss_function(net(mx.nd.array(images[chosen])), mx.nd.array(labels[chosen]))
        loss.backward()
        trainer.step(batch * store.num_workers)
        losses.append(float(loss.mean().asscalar()))
        # A loss is there when the sums of the step before are, and the forward pass after them.
        if step == config.warmup:
            say("begin", **usage())
    say("end", **usage())
    mx.nd.waitall()
    say("result", losses=[losses[0], losses[-1]])


if __name__ == "__main__":
    main()
