"""A worker that only sums: what each step took, and a digest of all that it was given, as JSON.

Usage: steps_in_time.py STEPS ELEMENTS TENSORS. It says `begun` after a few steps.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time

import mxnet as mx

BEGUN_AFTER = 5  # steps


def main(steps: int, elements: int, tensors: int) -> None:
    store = mx.kv.create("dist_sync")
    sums = [mx.nd.zeros((elements,)) for _ in range(tensors)]
    for key, array in enumerate(sums):
        store.init(key, array)
    seen = hashlib.sha1()
    ends = [time.monotonic()]
    for step in range(steps):
        for key, array in enumerate(sums):
            array[:] = 1 + (step + key + store.rank) % 5
            store.pushpull(key, array, out=array, priority=-key)
        mx.nd.waitall()
        ends.append(time.monotonic())
        for array in sums:
            seen.update(array[: 1 << 16].asnumpy().tobytes())
        if step + 1 == BEGUN_AFTER:
            print("begun", flush=True)
    print(json.dumps({"ends": ends, "digest": seen.hexdigest()}), flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
