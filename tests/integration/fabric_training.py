"""A process of a job under MLfabric: it pushes random updates, and writes down what became of them.

    fabric_training.py FOLDER STEPS [NODE SIGNAL]

That node, such as server_0, sends itself the signal in the middle.
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

FOLDER = Path(sys.argv[1])
STEPS = int(sys.argv[2])
ROLE, RANK = os.environ["DMLC_ROLE"], int(os.environ.get("DMLC_TASK_ID") or 0)
DIES = sys.argv[3:4] == [f"{ROLE}_{RANK}"]
SHAPE = (250, 400)  # 400 kB: several packets
DIES_AT = 8  # versions, or steps of a worker
# Everybody is a host of its own to the planner, or it would see no network.
os.environ["DMLC_NODE_HOST"] = f"127.0.0.{10 + RANK + {'server': 100, 'replica': 101}.get(ROLE, 0)}"


def work(model: Any) -> None:
    worker = fabric.register_as_worker(model)
    random = np.random.default_rng(RANK)
    updates = []
    versions = []
    for step in range(STEPS):
        if DIES and step == DIES_AT:
            die()
        got = worker.get()
        versions.append(worker.version)
        updates.append((random.standard_normal(SHAPE) / 100).astype(np.float32))
        number = worker.push(updates[-1])
        assert number == len(updates)
    got = worker.get()
    worker.leave()
    told = worker.stats()
    assert got.shape == SHAPE
    np.save(FOLDER / f"updates_{RANK}.npy", np.stack(updates))
    write(ROLE, {"stats": told, "versions": versions})


def die() -> None:
    os.kill(os.getpid(), signal.Signals[sys.argv[4]])


def die_in_the_middle(holder: fabric.Holder) -> None:
    while holder.stats()["version"] < DIES_AT:
        time.sleep(0.005)
    model, version = holder.model()
    np.save(FOLDER / f"last_of_{ROLE}.npy", model)
    write(f"last_of_{ROLE}", {"version": version})
    die()


def hold(model: Any) -> None:
    register = fabric.register_as_server if ROLE == "server" else fabric.register_as_replica
    holder = register(model)
    if DIES:
        threading.Thread(target=die_in_the_middle, args=(holder,), daemon=True).start()
    holder.serve()
    model, version = holder.model()
    np.save(FOLDER / f"model_{ROLE}.npy", model)
    write(ROLE, {"stats": holder.stats(), "version": version})


def write(name: str, what: dict[str, object]) -> None:
    (FOLDER / f"{name}_{RANK}.json").write_text(json.dumps(what))


def main() -> None:
    model = np.ones(SHAPE, np.float32)
    if ROLE == "worker":
        work(model)
    elif ROLE == "scheduler":
        scheduler = fabric.register_as_scheduler()
        scheduler.serve()
        write(ROLE, {"stats": scheduler.stats()})
    else:
        hold(model)


if __name__ == "__main__":
    main()
