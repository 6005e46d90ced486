"""What a worker of the soak runs: every sum is compared with the right one, until FILE is there.

Usage: training.py STOP_FILE PROGRESS_FILE. The numbers of steps done are written to the latter.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import mxnet as mx
import numpy as np

SIZES = (7, 3_000, 400_000)
END = len(SIZES)  # the key of whether all shall end


def value(key: int, step: int, rank: int) -> Any:
    """Small whole numbers: their sums are exact, and no two ranks or steps have the same."""
    return ((np.arange(SIZES[key]) + 31 * step + 7 * rank) % 251 + rank).astype(np.float32)


def main(stop: Path, progress: str) -> None:
    store = mx.kv.create("dist_sync")
    keys = list(range(len(SIZES)))
    arrays = [mx.nd.array(value(key, 0, 0)) for key in keys]
    store.init([*keys, END], [*arrays, mx.nd.zeros((1,))])
    outs = [mx.nd.zeros_like(array) for array in arrays]
    done = os.open(progress, os.O_CREAT | os.O_WRONLY, 0o600)
    ending = mx.nd.zeros((1,))
    step = 0
    while True:
        for key in keys:
            arrays[key][:] = value(key, step, store.rank)
        store.pushpull(keys, arrays, out=outs)
        for key in keys:
            right = sum(value(key, step, rank) for rank in range(store.num_workers))
            if not np.array_equal(outs[key].asnumpy(), right):
                print(f"WRONG SUM: key {key} in step {step}", flush=True)
                os._exit(99)
        ending[:] = float(stop.exists())
        store.pushpull(END, ending)
        step += 1
        os.pwrite(done, f"{step:12d}".encode(), 0)
        if ending.asscalar() > 0:
            break
    print("trained", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
