"""What a worker of the soak runs: every sum is compared with the right one, until FILE is there.

Usage: training.py STOP_FILE PROGRESS_FILE [may-lose]. The numbers of steps done are written to the
second file. Where the job may lose workers, a sum is right if it is that of this worker and of any
others, in each element; and the digest of all sums tells whether those who are left had the same.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import sys
from pathlib import Path
from typing import Any

import mxnet as mx
import numpy as np

SIZES = (7, 3_000, 400_000)
MAY_LOSE = "may-lose"
END = len(SIZES)  # the key of whether all shall end


def value(key: int, step: int, rank: int) -> Any:
    """Small whole numbers: their sums are exact, and no two ranks or steps have the same."""
    return ((np.arange(SIZES[key]) + 31 * step + 7 * rank) % 251 + rank).astype(np.float32)


def is_right(summed: Any, key: int, step: int, rank: int, workers: int, all_of_them: bool) -> bool:
    values = [value(key, step, other) for other in range(workers)]
    if all_of_them:
        return bool(np.array_equal(summed, sum(values)))
    others = [other for other in range(workers) if other != rank]
    right = np.zeros(SIZES[key], bool)
    for count in range(workers):
        for some in itertools.combinations(others, count):
            right |= summed == sum((values[other] for other in some), values[rank])
    return bool(right.all())


def main(stop: Path, progress: str, stays_whole: bool) -> None:
    store = mx.kv.create("dist_sync")
    keys = list(range(len(SIZES)))
    arrays = [mx.nd.array(value(key, 0, 0)) for key in keys]
    store.init([*keys, END], [*arrays, mx.nd.zeros((1,))])
    outs = [mx.nd.zeros_like(array) for array in arrays]
    done = os.open(progress, os.O_CREAT | os.O_WRONLY, 0o600)
    ending = mx.nd.zeros((1,))
    workers = store.num_workers
    seen = hashlib.sha1()
    step = 0
    while True:
        for key in keys:
            arrays[key][:] = value(key, step, store.rank)
        store.pushpull(keys, arrays, out=outs)
        for key in keys:
            summed = outs[key].asnumpy()
            seen.update(summed.tobytes())
            if not is_right(summed, key, step, store.rank, workers, stays_whole):
                print(f"WRONG SUM: key {key} in step {step}", flush=True)
                os._exit(99)
        ending[:] = float(stop.exists())
        store.pushpull(END, ending)
        step += 1
        os.pwrite(done, f"{step:12d}".encode(), 0)
        if ending.asscalar() > 0:
            break
    print(f"trained {seen.hexdigest()[:16]}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:] != [MAY_LOSE])
