"""What a step's gradients become: in `dist_async` an update, in `dist_sync` a sum over all workers.

With `dist_sync` the model is on the workers, and equal on all: each applies its whole optimizer to
the same sums. The server only sums, so nothing is lost with it if it has a replica.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import mxnet as mx
import numpy as np
from mxnet.ndarray import NDArray

from mxnet_plugins.entry import CPU, Updater
from mxnet_plugins.fabric.optimizers import WorkerPart
from mxnet_plugins.fabric.parameters import Parameters
from mxnet_plugins.keys import Key
from pslite_ext.fabric import Rule, Worker


def _array(values: Any) -> NDArray:
    return mx.nd.array(values, ctx=CPU, dtype=np.float32)


class Pushed(NamedTuple):
    """What a script has pushed in a step; `model` is the array of all parameters before it."""

    model: Any
    parameters: Parameters
    gradients: dict[Key, NDArray]

    def optimized(self, optimizer: WorkerPart, gradients: dict[Key, NDArray]) -> Any:
        """The model as the optimizer leaves it."""
        after = self.model.copy()
        with mx.autograd.pause():
            for key, gradient in gradients.items():
                weight = _array(self.parameters.part(self.model, key))
                optimizer(key, gradient, weight)
                self.parameters.part(after, key)[...] = weight.asnumpy()
        return after


class Steps(Protocol):
    """A kind of job."""

    needs_optimizer: bool

    def part(self, updater: Updater) -> WorkerPart:
        """What of an optimizer this worker does."""

    def rule(self, optimizer: WorkerPart | None) -> Rule | None:
        """What the server is asked to do."""

    def finish(self, worker: Worker, pushed: Pushed, optimizer: WorkerPart | None) -> Any:
        """The model after the step."""


class Asynchronous:
    """What this worker's optimizer changes is an update; then the model is got."""

    needs_optimizer = True

    def part(self, updater: Updater) -> WorkerPart:
        return WorkerPart(updater)

    def rule(self, optimizer: WorkerPart | None) -> Rule | None:
        return None if optimizer is None else optimizer.rule

    def finish(self, worker: Worker, pushed: Pushed, optimizer: WorkerPart | None) -> Any:
        assert optimizer is not None
        worker.push(pushed.optimized(optimizer, pushed.gradients) - pushed.model)
        return worker.get()


class Synchronous:
    """Gradients are summed over all workers. Without an optimizer, the sums are the values."""

    needs_optimizer = False

    def part(self, updater: Updater) -> WorkerPart:
        return WorkerPart(updater, whole=True)

    def rule(self, optimizer: WorkerPart | None) -> Rule | None:
        del optimizer
        return None

    def finish(self, worker: Worker, pushed: Pushed, optimizer: WorkerPart | None) -> Any:
        part = pushed.parameters.part
        sums = np.zeros_like(pushed.model)
        for key, gradient in pushed.gradients.items():
            part(sums, key)[...] = gradient.asnumpy()
        sums = worker.all_reduce(sums)
        if optimizer is not None:
            gradients = {key: _array(part(sums, key)) for key in pushed.gradients}
            return pushed.optimized(optimizer, gradients)
        after = pushed.model.copy()
        for key in pushed.gradients:
            part(after, key)[...] = part(sums, key)
        return after
