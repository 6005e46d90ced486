"""Training that writes checkpoints: FOLDER STEPS WHERE [DIES]. At that step the process kills
itself. WHERE: 1 if the store runs the optimizer.

A net with statistics and dropout on two devices, data drawn at random, a schedule that the script
changes, a net of each worker's own, AMP's scaler: whatever is not saved changes what is said in the
end.
"""

import hashlib
import os
import random
import signal
import sys

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from mxnet.contrib.amp.loss_scaler import LossScaler

import mxnet_plugins

FOLDER, STEPS, WHERE = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "1"
DIES = int(sys.argv[4]) if len(sys.argv) > 4 else 0
EVERY = 5
DEVICES = [mx.cpu(0), mx.cpu(1)]


def digest(arrays: list[mx.nd.NDArray]) -> str:
    return hashlib.sha256(b"".join(a.asnumpy().tobytes() for a in arrays)).hexdigest()[:16]


def main() -> None:
    mx.random.seed(3)
    store = mx.kv.create("dist_sync")
    net = gluon.nn.HybridSequential()
    net.add(
        gluon.nn.Dense(128, activation="relu"),
        *(gluon.nn.BatchNorm(), gluon.nn.Dropout(0.5), gluon.nn.Dense(4)),
    )
    net.initialize(mx.init.Xavier(), ctx=DEVICES)
    for device in DEVICES:
        net(mx.nd.zeros((1, 64), ctx=device))  # shapes are known
    schedule = mx.lr_scheduler.MultiFactorScheduler([4, 9, 13, 30], 0.7, base_lr=0.01)
    adam = mx.optimizer.Adam(learning_rate=0.01, lr_scheduler=schedule)
    trainer = gluon.Trainer(net.collect_params(), adam, kvstore=store, update_on_kvstore=WHERE)
    if not WHERE:
        trainer._amp_loss_scaler = LossScaler()
    probe = gluon.nn.Dense(1, in_units=64)
    probe.initialize()
    options = {"learning_rate": 0.01, "momentum": 0.9}
    probing = gluon.Trainer(probe.collect_params(), "sgd", options, kvstore=None)
    for seed in (random.seed, np.random.seed, mx.random.seed):
        seed(100 + store.rank)
    named = {"net": net, "trainer": trainer, "probe": probe, "probing": probing}
    saved = mxnet_plugins.checkpoint(FOLDER, every=EVERY, **named)
    print("begins after", saved.steps, flush=True)
    for step in range(saved.steps, STEPS):
        if step == DIES > 0:
            mx.nd.waitall()  # all have come this far: Python runs ahead of its engine
            saved.wait()
            os.kill(os.getpid(), signal.SIGKILL)
        x = mx.nd.array(np.random.standard_normal((16, 64)) * random.random())
        if step == 15:
            schedule.base_lr *= 0.5
        with autograd.record():
            losses = [net(its).square().sum() for its in gluon.utils.split_and_load(x, DEVICES)]
            losses.append(probe(x).square().sum())
        autograd.backward(losses)
        trainer.step(16)
        probing.step(16)
        saved.step()
    parameters = net.collect_params().values()
    scaled = [] if WHERE else [vars(trainer._amp_loss_scaler)]
    weights = digest([p.data() for p in parameters if p.grad_req != "null"])
    print("same", weights, adam.learning_rate, *scaled, flush=True)
    statistics = [a for p in parameters if p.grad_req == "null" for a in p.list_data()]
    own = digest(statistics), digest([p.data() for p in probe.collect_params().values()])
    print("own", *own, random.random(), mx.nd.random.uniform().asscalar(), flush=True)


if __name__ == "__main__":
    main()
