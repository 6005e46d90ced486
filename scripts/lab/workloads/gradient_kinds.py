"""Gradients that are no whole float32 sums: coded, rows of tables, or pushed asynchronously."""

from __future__ import annotations

from typing import Any

import mxnet as mx
import numpy as np

from scripts.lab.workloads import gradient_values, kinds
from scripts.lab.workloads.engine import memory_of
from scripts.lab.workloads.gradients import Gradients
from scripts.lab.workloads.workload import Tensor, Workload

_STEPS = {"2bit": 0.5, "1bit": 1.0}  # what a coded element can be, up or down
_THRESHOLDS = {"2bit": 0.5, "1bit": 0.0}


class Coded(Gradients):
    """Samples are a step up or down, of which coding loses nothing."""

    def __init__(self, kind: str, workload: Workload, store: Any) -> None:
        super().__init__(workload, store)
        self._step = _STEPS[kind]
        self._zeros_stay = kind == "2bit"  # with one bit, there is no zero
        store.set_gradient_compression({"type": kind, "threshold": _THRESHOLDS[kind]})

    def _value(self, tensor: int, turn: int, sample: int) -> float:
        up = gradient_values.pushed(tensor, turn, sample, rank=0) % 2
        return self._step if up else -self._step

    def fill(self, tensor: int, turn: int) -> None:
        for n, position in enumerate(self._samples[tensor]):
            self.memory[tensor][position] = self._value(tensor, turn, n)

    def check(self, tensor: int, turn: int) -> None:
        for n, position in enumerate(self._samples[tensor]):
            due = self.workers * self._value(tensor, turn, n)
            self._compare(tensor, turn, position, float(self.memory[tensor][position]), due)

    def check_zeros(self) -> None:
        if self._zeros_stay:
            return super().check_zeros()
        for tensor, memory in zip(self.workload.tensors, self.memory):
            if not (np.abs(memory) == self.workers).all():
                self.wrong.append(f"{tensor.name}: a sum of more, or fewer, than all signs")
        return None


class Asynchronous(Gradients):
    """Each push is added to the value at once; the value comes back into another array."""

    def _prepare(self) -> None:
        super()._prepare()
        self._gradients = [self._zeros(t) for t in self.workload.tensors]
        self._pushed = [memory_of(g) for g in self._gradients]
        self._turns = 0

    def _sample(self, tensor: int, sample: int, rank: int) -> float:
        return gradient_values.pushed(tensor, 0, sample, rank)  # the same in every round

    def fill(self, tensor: int, turn: int) -> None:
        self._turns = turn + 1
        for n, position in enumerate(self._samples[tensor]):
            self._pushed[tensor][position] = self._sample(tensor, n, self.rank)

    def check(self, tensor: int, turn: int) -> None:
        """What it has pushed itself is in it; of the others', whatever has come."""
        for n, position in enumerate(self._samples[tensor]):
            got = float(self.memory[tensor][position])
            least = (turn + 1) * self._sample(tensor, n, self.rank)
            if got < least:
                self._compare(tensor, turn, position, got, least)

    def check_zeros(self) -> None:
        """And that in the end all that was pushed is in it, once."""
        self.store._barrier()
        for i, out in enumerate(self.arrays):
            self.store.pull(i, out=out)
            out.wait_to_read()
            for n, position in enumerate(self._samples[i]):
                due = self._turns * gradient_values.due(i, 0, n, self.workers)
                self._compare(i, self._turns, position, float(self.memory[i][position]), due)
        super().check_zeros()

    def pushpull(self, tensor: int, priority: int | None = None) -> None:
        urgency = -tensor if priority is None else priority
        out = self.arrays[tensor]
        self.store.pushpull(tensor, self._gradients[tensor], out=out, priority=urgency)


class Rows(Gradients):
    """Some rows of each table; the rows that are pushed are pulled. Rounds differ by turns."""

    TURNS = 2

    def _shape(self, tensor: Tensor) -> tuple[int, int]:
        return tensor.elements // kinds.ROW_ELEMENTS, kinds.ROW_ELEMENTS

    def _zeros(self, tensor: Tensor) -> Any:
        return mx.nd.sparse.zeros("row_sparse", self._shape(tensor))

    def _prepare(self) -> None:
        self._given = [
            [self._gradient(i, turn) for turn in range(self.TURNS)]
            for i in range(len(self.workload.tensors))
        ]
        self._turn = 0

    def _gradient(self, tensor: int, turn: int) -> tuple[Any, Any, Any]:
        """Its rows hold the pushed value in their first column. The numbers of these rows, and what
        their sums must have there."""
        of = self.workload.tensors[tensor]
        rows = np.array(kinds.rows_pushed(of, turn, self.rank), np.int64)
        values = np.zeros((len(rows), kinds.ROW_ELEMENTS), np.float32)
        values[:, 0] = gradient_values.pushed(tensor, turn, 0, self.rank)
        made = mx.nd.sparse.row_sparse_array((values, rows), shape=self._shape(of))
        made.wait_to_read()
        together = gradient_values.due(tensor, turn, 0, self.workers)
        due = np.where((rows + turn) % kinds.PERIOD == 0, together, values[:, 0])
        return made, mx.nd.array(rows, dtype="int64"), due

    def fill(self, tensor: int, turn: int) -> None:
        self._turn = turn % self.TURNS

    def pushpull(self, tensor: int, priority: int | None = None) -> None:
        del priority  # rows are asked for when they are needed
        self.store.push(tensor, self._given[tensor][self._turn][0])

    def wait(self, tensor: int) -> None:
        _, rows, _ = self._given[tensor][self._turn]
        self.store.row_sparse_pull(tensor, out=self.arrays[tensor], row_ids=rows)
        self.arrays[tensor].wait_to_read()

    def check(self, tensor: int, turn: int) -> None:
        _, rows, due = self._given[tensor][self._turn]
        got = self.arrays[tensor].data.asnumpy()[:, 0]
        for i in np.flatnonzero(got != due):
            row = int(rows[i].asscalar())
            self._compare(tensor, turn, row, float(got[i]), float(due[i]))

    def check_zeros(self) -> None:
        for tensor, array in zip(self.workload.tensors, self.arrays):
            if array.data.asnumpy()[:, 1:].any():
                self.wrong.append(f"{tensor.name}: zeros did not stay zeros")


def gradients_of(kind: str, workload: Workload, store: Any) -> Gradients:
    if kind in kinds.CODED_BITS:
        return Coded(kind, workload, store)
    of = {kinds.WHOLE: Gradients, kinds.ROWS: Rows, kinds.ASYNC: Asynchronous}
    return of[kind](workload, store)
