"""What each kind of value must send and get back, and that wrong sums of it are noticed."""

from __future__ import annotations

from typing import Any

import pytest

from scripts.lab.workloads.kinds import ASYNC, PERIOD, ROW_ELEMENTS, ROWS, Ways, rows_pushed, ways
from scripts.lab.workloads.workload import Tensor, uniform

TABLE = Tensor("table_weight", 10 * PERIOD * ROW_ELEMENTS, 0.0, 0.0)


def test_every_worker_pushes_rows_that_all_push_and_rows_of_its_own() -> None:
    for turn in range(3):
        pushed = [set(rows_pushed(TABLE, turn, rank)) for rank in range(3)]
        assert [len(rows) for rows in pushed] == [20, 20, 20]
        everybody = pushed[0] & pushed[1] & pushed[2]
        assert len(everybody) == 10
        assert len(set().union(*pushed)) == 10 + 3 * 10
    assert rows_pushed(TABLE, 0, 1) != rows_pushed(TABLE, 1, 1)


def test_each_kind_has_its_own_bytes() -> None:
    odd = Tensor("odd_bias", 13, 0.0, 0.0)
    assert ways("2bit", odd, 2) == Ways(4, 52)
    assert ways("1bit", odd, 2) == Ways(2, 52)
    assert ways(ASYNC, odd, 2) == Ways(52, 52)
    row = 8 + 4 * ROW_ELEMENTS
    assert ways(ROWS, TABLE, 2) == Ways(20 * row, 30 * row)


class Echo:
    """A store whose every sum is what one worker pushed."""

    rank = 0

    def __init__(self, workers: int) -> None:
        self.num_workers = workers

    def init(self, key: int, value: Any) -> None:
        pass

    def set_gradient_compression(self, params: dict[str, Any]) -> None:
        pass

    def _barrier(self) -> None:
        pass

    def pull(self, key: int, out: Any) -> None:
        pass

    def push(self, key: int, value: Any) -> None:
        self._pushed = value

    def row_sparse_pull(self, key: int, out: Any, row_ids: Any) -> None:
        self._pushed.copyto(out)

    def pushpull(self, key: int, value: Any, out: Any, priority: int) -> None:
        if out is not value:
            value.copyto(out)


@pytest.mark.parametrize("kind", ["2bit", "1bit", ROWS, ASYNC])
@pytest.mark.parametrize("workers", [1, 2])
def test_sums_of_too_few_workers_are_noticed(kind: str, workers: int) -> None:
    pytest.importorskip("mxnet")
    from scripts.lab.workloads.gradient_kinds import gradients_of

    gradients = gradients_of(kind, uniform(1, TABLE.bytes), Echo(workers))
    gradients.fill(0, 0)
    gradients.pushpull(0)
    gradients.wait(0)
    gradients.check(0, 0)
    if kind == "1bit":  # there is no zero, so the echo of zeros is wrong
        gradients.memory[0][gradients.memory[0] == 0] = 1
    gradients.check_zeros()
    assert bool(gradients.wrong) == (workers == 2)
