"""A workload's gradients and the store that sums them."""

from __future__ import annotations

from typing import Any

import mxnet as mx
from engine import memory_of
from workloads import Workload


class Exchange:
    """A workload's gradients and the store that sums them in place, as gluon's Trainer does.

    Gradients are zero but for three samples of each, which differ by worker, tensor and round: so
    every sum of every round is checked, and no time goes into filling arrays.
    """

    def __init__(self, workload: Workload, store: Any) -> None:
        self.workload = workload
        self.store = store
        self.rank = store.rank if store else 0
        self.workers = store.num_workers if store else 1
        self.gradients = [mx.nd.zeros((t.elements,)) for t in workload.tensors]
        self.memory = [memory_of(g) for g in self.gradients]
        self._samples = [sorted({0, t.elements // 3, t.elements - 1}) for t in workload.tensors]
        self.wrong: list[str] = []
        if store:
            _announce(store, workload)
            for i, gradient in enumerate(self.gradients):
                store.init(i, gradient)

    def _value(self, tensor: int, turn: int, sample: int) -> float:
        return float((7 * turn + 3 * tensor + 5 * sample) % 997 + 1)

    def fill(self, tensor: int, turn: int) -> None:
        for n, position in enumerate(self._samples[tensor]):
            self.memory[tensor][position] = self._value(tensor, turn, n) * (self.rank + 1)

    def check(self, tensor: int, turn: int) -> None:
        ranks = self.workers * (self.workers + 1) / 2 if self.store else 1
        for n, position in enumerate(self._samples[tensor]):
            due = self._value(tensor, turn, n) * ranks
            got = float(self.memory[tensor][position])
            if got != due and len(self.wrong) < 5:
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
            gradient = self.gradients[tensor]
            urgency = -tensor if priority is None else priority
            self.store.pushpull(tensor, gradient, out=gradient, priority=urgency)


def _announce(store: Any, workload: Workload) -> None:
    if hasattr(store, "announce"):  # ours: what its Trainer would tell it
        store.announce((i, t.name, t.bytes, -i) for i, t in enumerate(workload.tensors))
