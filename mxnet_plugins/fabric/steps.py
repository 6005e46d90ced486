"""What a step's gradients become: in `dist_async` an update, in `dist_sync` a sum over all workers.

With `dist_sync` the model is on the workers, and equal on all: each applies its whole optimizer to
the same sums. The server only sums, so nothing is lost with it if it has a replica.
"""

from __future__ import annotations

from typing import Any, Protocol

import mxnet as mx
import numpy as np
from mxnet.ndarray import NDArray

from mxnet_plugins.entry import CPU, Updater
from mxnet_plugins.fabric.optimizers import WorkerPart
from mxnet_plugins.fabric.parameters import Parameters
from mxnet_plugins.keys import Key
from pslite_ext.fabric import Rule, Worker


class Steps(Protocol):
    """A kind of job; `model` is the array of all parameters."""

    needs_optimizer: bool

    def part(self, updater: Updater) -> WorkerPart:
        """What of an optimizer this worker does."""

    def rule(self, optimizer: WorkerPart | None) -> Rule | None:
        """What the server is asked to do."""

    def finish(
        self,
        worker: Worker,
        model: Any,
        parameters: Parameters,
        gradients: dict[Key, NDArray],
        optimizer: WorkerPart | None,
    ) -> Any:
        """The model after the step."""


def _apply(
    optimizer: WorkerPart,
    model: Any,
    parameters: Parameters,
    gradients: dict[Key, NDArray],
    into: Any,
) -> None:
    """The parameters as the optimizer leaves them, those that have a gradient."""
    with mx.autograd.pause():
        for key, gradient in gradients.items():
            weight = mx.nd.array(parameters.part(model, key), ctx=CPU, dtype=np.float32)
            optimizer(key, gradient, weight)
            parameters.part(into, key)[...] = weight.asnumpy()


class Asynchronous:
    """What this worker's optimizer changes is an update; then the model is got."""

    needs_optimizer = True

    def part(self, updater: Updater) -> WorkerPart:
        return WorkerPart(updater)

    def rule(self, optimizer: WorkerPart | None) -> Rule | None:
        return None if optimizer is None else optimizer.rule

    def finish(
        self,
        worker: Worker,
        model: Any,
        parameters: Parameters,
        gradients: dict[Key, NDArray],
        optimizer: WorkerPart | None,
    ) -> Any:
        assert optimizer is not None
        after = model.copy()
        _apply(optimizer, model, parameters, gradients, after)
        worker.push(after - model)
        return worker.get()


class Synchronous:
    """Gradients are summed over all workers. Without an optimizer, the sums are the values."""

    needs_optimizer = False

    def part(self, updater: Updater) -> WorkerPart:
        return WorkerPart(updater, whole=True)

    def rule(self, optimizer: WorkerPart | None) -> Rule | None:
        del optimizer
        return None

    def finish(
        self,
        worker: Worker,
        model: Any,
        parameters: Parameters,
        gradients: dict[Key, NDArray],
        optimizer: WorkerPart | None,
    ) -> Any:
        values = np.zeros_like(model)
        for key, gradient in gradients.items():
            parameters.part(values, key)[...] = gradient.asnumpy()
        values = worker.all_reduce(values)
        after = model.copy()
        if optimizer is None:
            for key in gradients:
                parameters.part(after, key)[...] = parameters.part(values, key)
            return after
        sums = {
            key: mx.nd.array(parameters.part(values, key), ctx=CPU, dtype=np.float32)
            for key in gradients
        }
        _apply(optimizer, model, parameters, sums, after)
        return after
