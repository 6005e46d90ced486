"""A worker without MXNet: values and sums on NumPy's memory; other roles do what theirs is."""

from __future__ import annotations

import gc
import os
import resource
import sys
import time
import weakref
from typing import Any

import numpy as np

from pslite_ext import _core
from pslite_ext.config import Settings
from pslite_ext.errors import InvalidArgumentError
from pslite_ext.job import serving

ELEMENTS = 100_000
ROUNDS = 20
ROWS, ROW = 50, 20  # of the tensor that is summed by rows


def memory(array: np.ndarray[Any, Any]) -> _core.Memory:
    return array, array.ctypes.data, array.nbytes


def part(rank: int) -> np.ndarray[Any, Any]:
    """Of float32 of different sizes, whose sums differ with the order."""
    random = np.random.RandomState(rank)
    scale = (10.0 ** random.randint(-4, 5, ROWS * ROW)).astype(np.float32)
    return (random.rand(ROWS * ROW).astype(np.float32) - 0.5) * scale


def sum_in_order(rank: int, workers: int) -> None:
    """Whoever comes first; each round's sums are those in the order of ranks, bit for bit."""
    whole = _core.Tensor(200, "whole", "float32", [ROWS, ROW])
    by_rows = _core.Tensor(201, "by_rows", "float32", [ROWS, ROW])
    numbers = np.arange(ROWS, dtype=np.int64).tobytes()
    due = part(0)
    for other in range(1, workers):
        due = due + part(other)
    for step in range(ROUNDS):
        time.sleep((rank + step) % workers / 500)
        array = part(rank)
        ticket = by_rows.push_rows(numbers, array.tobytes(), ROW)
        whole.sum_memory(memory(array)).wait()
        assert array.tobytes() == due.tobytes(), f"step {step}"
        assert by_rows.wait_rows(ticket) == (numbers, due.tobytes()), f"step {step}"


def refused(what: Any) -> None:
    try:
        what()
    except InvalidArgumentError as error:
        print("refused:", error, flush=True)


def use_what_was_refused(rank: int, workers: int) -> None:
    """A refusal leaves its tensor as it was."""
    value = _core.Tensor(300, "value", "float32", [4])
    got = np.full(4, 7, np.float32)
    if rank == 0:
        value.first_value(memory(got)).wait()
    refused(lambda: value.sum_memory(memory(np.ones(3, np.float32))))
    got[:] = 0
    value.pull_memory(memory(got)).wait()
    assert (got == 7).all()

    rows = _core.Tensor(301, "rows", "float32", [ROWS, 2])
    ones = np.ones(2, np.float32).tobytes()
    for row in (-1, ROWS):
        refused(lambda row=row: rows.push_rows(np.int64(row).tobytes(), ones, 2))
    last = np.int64(ROWS - 1).tobytes()
    summed = rows.wait_rows(rows.push_rows(last, ones, 2))
    assert summed == (last, np.full(2, workers, np.float32).tobytes())


def drop_in_a_cycle(tensor: Any, rank: int, workers: int) -> None:
    """The memory is kept, too, if it is Python's collector that finds the work."""
    array = np.ones(ELEMENTS, np.float32)
    there = weakref.ref(array)
    if rank == 0:
        dropped: list[Any] = [tensor.sum_memory(memory(array))]
        dropped.append(dropped)
        del dropped, array
        gc.collect()
        assert workers == 1 or there() is not None
    _core.barrier()
    if rank != 0:
        tensor.sum_memory(memory(np.ones(ELEMENTS, np.float32))).wait()


def share_no_memory() -> None:
    """No file, and no memory behind a descriptor, is larger than this."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))


def main() -> int:
    if (os.environ["DMLC_ROLE"], os.environ["DMLC_TASK_ID"]) == ("server", "0"):
        share_no_memory()
    if os.environ["DMLC_ROLE"] != "worker":
        return serving.main()
    settings = Settings.from_environment(os.environ)
    _core.start(settings.options())
    rank, workers = _core.rank(), int(settings.values["DMLC_NUM_WORKER"])
    tensors = [_core.Tensor(100 + i, f"w{i}", "float32", [ELEMENTS]) for i in range(3)]

    value = np.full(ELEMENTS, 7 - rank, np.float32)
    (tensors[0].pull_memory if rank else tensors[0].first_value)(memory(value)).wait()
    assert (value == 7).all()

    for step in range(ROUNDS):
        arrays = [np.full(ELEMENTS, step + i + rank, np.float32) for i in range(len(tensors))]
        works = [t.sum_memory(memory(a), i) for i, (t, a) in enumerate(zip(tensors, arrays))]
        for i, (work, array) in enumerate(zip(works, arrays)):
            work.wait()
            assert work.over
            assert (array == workers * (step + i) + sum(range(workers))).all()

    # Dropped while under way, array and all: the memory is kept until nobody uses it.
    tensors[0].sum_memory(memory(np.ones(ELEMENTS, np.float32)))
    tensors[1].sum_memory(memory(np.ones(ELEMENTS, np.float32))).wait()
    drop_in_a_cycle(tensors[2], rank, workers)
    use_what_was_refused(rank, workers)
    refused(lambda: _core.Tensor(400, "loose", "float32", [4], asynchronous=True))
    sum_in_order(rank, workers)
    _core.barrier()
    assert "mxnet" not in sys.modules
    print("summed", flush=True)
    _core.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
