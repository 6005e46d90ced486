"""What every node of an MLfabric job in the soak runs: a worker pushes until FILE is there.

Usage: fabric_training.py STOP_FILE PROGRESS_FILE WORKERS MODE. Each worker has a part of the model
for itself: its n-th update adds 1 to all of one half and n to all of the other. So any model tells
whose updates are in it, and whether each is there whole. In the end, a worker says how many of its
updates were committed, and the sum of their numbers; whoever is the server says the same of all.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from pslite_ext import fabric

HALF = 60_000  # of a worker's part
WRONG_SUM = 99


def counts(model: Any, workers: int) -> list[list[int]]:
    """Of each worker, how many updates are in the model, and the sum of their numbers."""
    found = []
    for values in model[:-1].reshape(2 * workers, HALF):
        if not np.all(values == values[0]):
            print("WRONG SUM: an update is in the model in part", flush=True)
            os._exit(WRONG_SUM)
        found.append(int(values[0]))
    return [found[i : i + 2] for i in range(0, 2 * workers, 2)]


def main(stop: Path, progress: str, workers: int, mode: str) -> None:
    in_step = mode == "sync"

    def tell(model: Any) -> None:
        print("model", json.dumps(counts(model, workers)), flush=True)

    # The last number is above 0 when all are to end: in step, that is with the same version.
    worker = fabric.register(np.zeros(2 * workers * HALF + 1, np.float32), at_end=tell)
    own = slice(2 * worker.rank * HALF, (2 * worker.rank + 1) * HALF)
    second = slice(own.stop, own.stop + HALF)
    update = np.zeros(2 * workers * HALF + 1, np.float32)
    done = os.open(progress, os.O_CREAT | os.O_WRONLY, 0o600)
    for step in itertools.count(1):
        model = worker.get()
        pushed = counts(model, workers)[worker.rank][0]
        if pushed >= step:
            print(f"WRONG SUM: {pushed} updates of {step - 1} are in the model", flush=True)
            os._exit(WRONG_SUM)
        over = stop.exists()
        if model[-1] > 0 or (over and not in_step):
            break
        update[own], update[second], update[-1] = 1.0, float(step), float(over)
        worker.push(update)
        os.pwrite(done, f"{step:12d}".encode(), 0)
    worker.settle()
    numbers = [n for n in range(1, step) if worker.fate(n) == "committed"]
    worker.leave()
    print("committed", json.dumps([len(numbers), sum(numbers)]), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4])
