"""A training loop that a test disturbs: prints `looping`, then trains.

Until STEPS steps are done, or until the file STOP_FILE exists (all workers stop after the same
step: they sum what they see), or forever.
"""

from __future__ import annotations

import os
import sys
import time

import mxnet as mx


def main() -> None:
    steps = int(os.environ.get("STEPS", "0"))
    store = mx.kv.create("dist_sync")
    # A small tensor, and one that is split over the servers.
    values = [mx.nd.ones((7,)), mx.nd.ones((1_100_000,))]
    store.init(["small", "large"], values)
    outs = [mx.nd.zeros_like(v) for v in values]
    stop_file = os.environ.get("STOP_FILE", "")
    seen = mx.nd.zeros((1,))
    store.init("stop", seen)
    step = 0
    while not steps or step < steps:
        store.pushpull(["small", "large"], values, out=outs)
        for out in outs:
            assert float(out[0].asscalar()) == store.num_workers, out[0]
        if stop_file:
            seen[:] = float(os.path.exists(stop_file))
            store.pushpull("stop", seen)
            if seen.asscalar() > 0:
                break
        step += 1
        if step == 3:
            print("looping", flush=True)
        if os.environ.get("FAIL_RANK") == str(store.rank) and step == 5:
            raise ValueError("a mistake in the script")
        if os.environ.get("STOP_RANK") == str(store.rank) and step == 5:
            print("stopping early", flush=True)
            sys.exit(int(os.environ.get("STOP_CODE", "0")))
        time.sleep(0.05)  # a test that waits for something leaves the processor to others
    print("trained", flush=True)


if __name__ == "__main__":
    main()
