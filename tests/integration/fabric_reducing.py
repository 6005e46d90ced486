"""A process of a job under MLfabric whose workers sum arrays, between updates of the model.

    fabric_reducing.py FOLDER ROUNDS [NODE]

That node, such as server_0, kills itself in the middle.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from pslite_ext import fabric
from tests.integration.fabric_process import NAME, RANK, ROLE, die, hold, wait_for_version

FOLDER, ROUNDS = Path(sys.argv[1]), int(sys.argv[2])
DIES = sys.argv[3:] == [NAME]
SIZE = 70_000  # 280 kB: several packets


def work(model: Any) -> None:
    worker = fabric.register_as_worker(model)
    random = np.random.default_rng(RANK)
    parts = random.standard_normal((ROUNDS, SIZE)).astype(np.float32)
    sums = []
    for step, part in enumerate(parts):
        if DIES and step == ROUNDS // 2:
            die()
        sums.append(worker.all_reduce(part))
        worker.push(np.full(SIZE, 0.5, np.float32))
    worker.settle()
    worker.all_reduce(parts[0])  # all have settled
    model = worker.get()
    worker.leave()
    np.savez(FOLDER / f"worker_{RANK}.npz", parts=parts, sums=np.stack(sums), model=model)
    (FOLDER / f"worker_{RANK}.json").write_text(json.dumps(worker.stats()))


def die_in_the_middle(holder: fabric.Holder) -> None:
    wait_for_version(holder, ROUNDS // 2)
    die()


def main() -> None:
    model = np.zeros(SIZE, np.float32)
    if ROLE == "worker":
        work(model)
    elif ROLE == "scheduler":
        fabric.register_as_scheduler().serve()
    else:
        hold(model, die_in_the_middle if DIES else None)


if __name__ == "__main__":
    main()
