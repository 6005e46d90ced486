"""As torch_newcomers.py, under MXNet: WHERE is 1 if the store runs the optimizer, OTHER if there is
a second Trainer that nobody names."""

import hashlib
import os
import signal
import sys
import time
from pathlib import Path

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

import mxnet_plugins
from pslite_ext import _core
from tests.integration.ending_together import last_step

folder, where = Path(sys.argv[1]), os.environ["WHERE"] == "1"
mx.random.seed(3)


def new_net() -> gluon.nn.HybridSequential:
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(100, activation="relu"), gluon.nn.BatchNorm(), gluon.nn.Dense(4))
    net.initialize(mx.init.Xavier())
    net(mx.nd.zeros((1, 32)))  # shapes are known
    return net


net = new_net()
schedule = mx.lr_scheduler.FactorScheduler(20, 0.95, base_lr=0.001)
trainer = gluon.Trainer(
    net.collect_params(),
    "adam",
    {"learning_rate": 0.001, "lr_scheduler": schedule},
    kvstore="dist_sync",
    update_on_kvstore=where,
)
other = new_net() if os.environ.get("OTHER") else None
saved = mxnet_plugins.checkpoint(
    folder / f"saved {os.getpid()}", every=50, net=net, trainer=trainer
)
if other is not None:
    trainer_of_other = gluon.Trainer(other.collect_params(), "sgd", kvstore="dist_sync")
began, rank = saved.steps, _core.rank()
np.random.seed(100 + rank)
last = None
while last is None or saved.steps < last:
    x = mx.nd.array(np.random.standard_normal((16, 32)))
    with autograd.record():
        loss = net(x).square().sum()
    loss.backward()
    # It changes when a worker is lost or comes; for all of them at the same step.
    store = trainer._kvstore
    trainer.step(16 * (2 if store is None else store.num_workers))
    if other is not None:
        with autograd.record():
            loss = other(x).square().sum()
        loss.backward()
        trainer_of_other.step(32)
    mx.nd.waitall()  # or it runs ahead of the rounds, and may be past the last step when it hears
    time.sleep(0.01)
    if os.environ.get("DIES_AT") == str(saved.steps) and rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    saved.step()
    if last is None:
        last = last_step(folder, saved.steps)
learnt = [p.data() for p in net.collect_params().values() if p.grad_req != "null"]
digest = hashlib.sha1(b"".join(a.asnumpy().tobytes() for a in learnt)).hexdigest()[:12]
rate = trainer.learning_rate
print(f"worker {rank} began after {began}; {digest} at {saved.steps}, rate {rate:.9g}", flush=True)
