"""A worker under Horovod Elastic that hardly computes: when each step that counts ended, how many
it did again, and a digest of its weights in the end. It commits its state after every step.

Usage: horovod_steps.py STEPS ELEMENTS TENSORS.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import horovod.mxnet as hvd
import mxnet as mx
from horovod.common.elastic import ObjectState, run_fn
from horovod.common.exceptions import HorovodInternalError

from scripts.lab.workloads.timed_steps import BEGUN_AFTER


@contextmanager
def _lost() -> Iterator[None]:
    """Under MXNet, Horovod's own error arrives as MXNet's."""
    try:
        yield
    except mx.base.MXNetError as error:
        raise HorovodInternalError(str(error)) from error


class Weights(ObjectState):  # type: ignore[misc]
    """What horovod.torch.elastic has for models, for arrays of MXNet."""

    def __init__(self, elements: int, tensors: int) -> None:
        self.all = [mx.nd.zeros((elements,)) for _ in range(tensors)]
        self._committed = [array.copy() for array in self.all]
        super().__init__(bcast_object=hvd.broadcast_object, get_rank=hvd.rank, steps=0)

    def save(self) -> None:
        for array, kept in zip(self.all, self._committed):
            array.copyto(kept)
        super().save()

    def restore(self) -> None:
        self.all = [kept.copy() for kept in self._committed]
        super().restore()

    def sync(self) -> None:
        with _lost():
            for key, array in enumerate(self.all):
                hvd.broadcast_(array, root_rank=0, name=f"weights {key}")
            for array in self.all:
                array.wait_to_read()
            super().sync()
        self.save()

    def check_host_updates(self) -> None:
        with _lost():
            super().check_host_updates()


def _step(weights: Weights, elements: int) -> None:
    with _lost():
        gradients = []
        for key in range(len(weights.all)):
            value = 1 + (weights.steps + key + hvd.rank()) % 5
            gradients.append(mx.nd.full((elements,), value))
            hvd.allreduce_(gradients[-1], name=f"gradient {key}", priority=-key)
        for gradient in gradients:
            gradient.wait_to_read()
        for array, gradient in zip(weights.all, gradients):
            array -= 0.1 * gradient
            array.wait_to_read()


def _restart() -> None:
    hvd.shutdown()
    hvd.init()


def main(steps: int, elements: int, tensors: int) -> None:
    ready = time.monotonic()
    hvd.init()
    print(f"process {os.environ['HOROVOD_HOSTNAME']} {os.getpid()}", flush=True)
    weights = Weights(elements, tensors)
    ends: list[float] = []
    tried: list[int] = []

    def train(weights: Weights) -> None:
        while weights.steps < steps:
            tried.append(weights.steps)
            _step(weights, elements)
            weights.steps += 1
            if weights.steps == BEGUN_AFTER:
                print("begun", flush=True)
            ends.append(time.monotonic())
            weights.commit()

    run_fn(train, _restart)(weights)
    digest = hashlib.sha1(b"".join(array.asnumpy().tobytes() for array in weights.all)).hexdigest()
    told = {"ready": ready, "ends": ends, "discarded": len(tried) - len(ends), "digest": digest}
    print(json.dumps(told), flush=True)
    signal.pause()  # the job ends when one of them does


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
