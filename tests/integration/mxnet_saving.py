"""Training that writes checkpoints: FOLDER STEPS WHERE [DIES]. At that step the process kills
itself. WHERE: 1 if the store runs the optimizer.

A net with statistics and dropout, data drawn at random, a schedule: whatever is not saved changes
what is said in the end.
"""

import hashlib
import os
import random
import signal
import sys

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

import mxnet_plugins

FOLDER, STEPS, WHERE = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "1"
DIES = int(sys.argv[4]) if len(sys.argv) > 4 else 0
EVERY = 5


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
    net.initialize(mx.init.Xavier())
    net(mx.nd.zeros((1, 64)))  # shapes are known
    schedule = mx.lr_scheduler.MultiFactorScheduler([4, 9, 13, 30], 0.7, base_lr=0.01)
    arguments = {"learning_rate": 0.01, "lr_scheduler": schedule}
    trainer = gluon.Trainer(
        net.collect_params(), "adam", arguments, kvstore=store, update_on_kvstore=WHERE
    )
    for seed in (random.seed, np.random.seed, mx.random.seed):
        seed(100 + store.rank)
    saved = mxnet_plugins.checkpoint(FOLDER, every=EVERY, net=net, trainer=trainer)
    print("begins after", saved.steps, flush=True)
    for step in range(saved.steps, STEPS):
        if step == DIES > 0:
            mx.nd.waitall()  # all have come this far: Python runs ahead of its engine
            saved.wait()
            os.kill(os.getpid(), signal.SIGKILL)
        x = mx.nd.array(np.random.standard_normal((16, 64)) * random.random())
        with autograd.record():
            loss = net(x).square().sum()
        loss.backward()
        trainer.step(16)
        saved.step()
    parameters = net.collect_params().values()
    print("same", digest([p.data() for p in parameters if p.grad_req != "null"]), flush=True)
    own = digest([p.data() for p in parameters if p.grad_req == "null"])
    print("own", own, random.random(), mx.nd.random.uniform().asscalar(), flush=True)


if __name__ == "__main__":
    main()
