"""A workload's gradients and the store that sums them."""

from __future__ import annotations

import os
from typing import Any

import mxnet as mx

from scripts.lab.workloads import gradient_values
from scripts.lab.workloads.engine import memory_of
from scripts.lab.workloads.workload import Tensor, Workload


class Gradients:
    """A workload's gradients and the store that sums them in place, as gluon's Trainer does."""

    def __init__(self, workload: Workload, store: Any) -> None:
        self.workload = workload
        self.store = store
        self.rank = store.rank if store else 0
        self.workers = store.num_workers if store else 1
        self.wrong: list[str] = []
        self.arrays = [self._zeros(t) for t in workload.tensors]
        if store:
            _announce(store, workload)
            for i, gradient in enumerate(self.arrays):
                store.init(i, gradient)
        self._prepare()

    def _zeros(self, tensor: Tensor) -> Any:
        return mx.nd.zeros(tensor.shape)

    def _prepare(self) -> None:
        self.memory = [memory_of(g) for g in self.arrays]
        self._samples = [gradient_values.positions(t.elements) for t in self.workload.tensors]

    def fill(self, tensor: int, turn: int) -> None:
        for n, position in enumerate(self._samples[tensor]):
            self.memory[tensor][position] = gradient_values.pushed(tensor, turn, n, self.rank)

    def check(self, tensor: int, turn: int) -> None:
        for n, position in enumerate(self._samples[tensor]):
            due = gradient_values.due(tensor, turn, n, self.workers)
            self._compare(tensor, turn, position, float(self.memory[tensor][position]), due)

    def _compare(self, tensor: int, turn: int, position: int, got: float, due: float) -> None:
        off = gradient_values.ROUNDED * due if "LAB_ROUNDED" in os.environ else 0.0
        if abs(got - due) > off and len(self.wrong) < 5:
            name = self.workload.tensors[tensor].name
            self.wrong.append(f"round {turn}, {name}[{position}]: {got}, not {due}")

    def check_zeros(self) -> None:
        """All that was not sampled; after the last round."""
        for i, memory in enumerate(self.memory):
            memory[self._samples[i]] = 0
            if memory.any():
                self.wrong.append(f"{self.workload.tensors[i].name}: zeros did not stay zeros")

    def pushpull(self, tensor: int, priority: int | None = None) -> None:
        if self.store:
            gradient = self.arrays[tensor]
            urgency = -tensor if priority is None else priority
            self.store.pushpull(tensor, gradient, out=gradient, priority=urgency)

    def wait(self, tensor: int) -> None:
        self.arrays[tensor].wait_to_read()


def _announce(store: Any, workload: Workload) -> None:
    if hasattr(store, "announce"):  # ours: what its Trainer would tell it
        store.announce((i, t.name, t.bytes, -i) for i, t in enumerate(workload.tensors))
