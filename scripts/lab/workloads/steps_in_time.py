"""A worker that only sums: what each step took, and a digest of all that it was given.

Usage: steps_in_time.py STEPS ELEMENTS TENSORS.
"""

from __future__ import annotations

import sys

import mxnet as mx

from scripts.lab.workloads.timed_steps import SEEN, run


def main(steps: int, elements: int, tensors: int) -> None:
    store = mx.kv.create("dist_sync")
    sums = [mx.nd.zeros((elements,)) for _ in range(tensors)]
    for key, array in enumerate(sums):
        store.init(key, array)

    def step(number: int) -> None:
        for key, array in enumerate(sums):
            array[:] = 1 + (number + key + store.rank) % 5
            store.pushpull(key, array, out=array, priority=-key)
        mx.nd.waitall()

    run(steps, step, lambda: (array[:SEEN].asnumpy().tobytes() for array in sums))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
