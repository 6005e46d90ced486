"""A worker without MXNet: values and sums on NumPy's memory; other roles do what theirs is."""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np

from mxnet_plugins import server
from pslite_ext import _core
from pslite_ext.config import Settings
from pslite_ext.errors import InvalidArgumentError

ELEMENTS = 100_000
ROUNDS = 20


def memory(array: np.ndarray[Any, Any]) -> _core.Memory:
    return array, array.ctypes.data, array.nbytes


def main() -> int:
    if os.environ["DMLC_ROLE"] != "worker":
        return server.main()
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
    try:
        tensors[2].sum_memory(memory(np.ones(3, np.float32)))
    except InvalidArgumentError as error:
        print("refused:", error, flush=True)
    _core.barrier()
    assert "mxnet" not in sys.modules
    print("summed", flush=True)
    _core.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
