"""A process of a job under MLfabric whose workers sum arrays, between updates of the model.

    fabric_reducing.py FOLDER ROUNDS [NODE]

That node, such as server_0, kills itself in the middle.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from pslite_ext import fabric

FOLDER, ROUNDS = Path(sys.argv[1]), int(sys.argv[2])
ROLE, RANK = os.environ["DMLC_ROLE"], int(os.environ.get("DMLC_TASK_ID") or 0)
DIES = sys.argv[3:] == [f"{ROLE}_{RANK}"]
SIZE = 70_000  # 280 kB: several packets
# Everybody is a host of its own to the planner, or it would see no network.
os.environ["DMLC_NODE_HOST"] = f"127.0.0.{10 + RANK + {'server': 100, 'replica': 101}.get(ROLE, 0)}"


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


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
    while holder.stats()["version"] < ROUNDS // 2:
        time.sleep(0.002)
    die()


def hold(model: Any) -> None:
    register = fabric.register_as_server if ROLE == "server" else fabric.register_as_replica
    holder = register(model)
    if DIES:
        threading.Thread(target=die_in_the_middle, args=(holder,), daemon=True).start()
    holder.serve()


def main() -> None:
    model = np.zeros(SIZE, np.float32)
    if ROLE == "worker":
        work(model)
    elif ROLE == "scheduler":
        fabric.register_as_scheduler().serve()
    else:
        hold(model)


if __name__ == "__main__":
    main()
