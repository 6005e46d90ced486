"""What of an optimizer the server does, and what is left to the workers.

Momentum is a state of the model: a worker that kept it would mix in updates of its own alone. So
that of SGD and of NAG goes to the server, and workers apply the rest. Any other optimizer stays
whole on the worker: its states know that worker's gradients, and what it changes is the update.
"""

from __future__ import annotations

from typing import Any

import mxnet as mx
from mxnet.ndarray import NDArray

from mxnet_plugins.entry import Updater
from mxnet_plugins.keys import Key
from pslite_ext.fabric import Rule

# A subclass may do anything with its momentum.
_MOVABLE = {mx.optimizer.SGD: False, mx.optimizer.NAG: True}


def rule_of(updater: Updater) -> Rule:
    """What the server is asked to do with updates."""
    optimizer = getattr(updater, "optimizer", None)
    momentum = float(getattr(optimizer, "momentum", 0.0))
    if type(optimizer) not in _MOVABLE or momentum == 0:
        return Rule()
    return Rule(momentum, _MOVABLE[type(optimizer)])


class WorkerPart:
    """An updater; unless `whole`, without the momentum that the server applies."""

    def __init__(self, updater: Updater, *, whole: bool = False) -> None:
        self.updater: Any = updater
        self.rule = Rule() if whole else rule_of(updater)

    def __call__(self, key: Key, gradient: NDArray, weight: NDArray) -> None:
        if self.rule == Rule():
            self.updater(key, gradient, weight)
            return
        # The script's own optimizer goes on to show its momentum, and to be told learning rates.
        optimizer = self.updater.optimizer
        momentum, optimizer.momentum = optimizer.momentum, 0.0
        try:
            self.updater(key, gradient, weight)
        finally:
            optimizer.momentum = momentum
