"""A process of a job under MLfabric: it pushes random updates, and writes down what became of them.

    fabric_training.py FOLDER STEPS [NODE SIGNAL]

That node, such as server_0, sends itself the signal in the middle.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from typing import Any

import numpy as np

from pslite_ext import fabric
from pslite_ext.errors import InvalidArgumentError
from tests.integration import fabric_process as own
from tests.integration.fabric_process import DIES, FOLDER, LENGTH, RANK, ROLE

SHAPE = (250, 400)  # 400 kB: several packets
DIES_AT = 8  # versions, or steps of a worker


def work(model: Any) -> None:
    worker = fabric.register_as_worker(model)
    random = np.random.default_rng(RANK)
    updates = []
    versions = []
    for step in range(LENGTH):
        if DIES and step == DIES_AT:
            own.die(sys.argv[4])
        if step == LENGTH - 3:
            own.await_death()
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


def die_in_the_middle(holder: fabric.Holder) -> None:
    own.wait_for_version(holder, DIES_AT)
    with suppress(InvalidArgumentError):  # one of several servers: it has a part
        model, version = holder.model()
        np.save(FOLDER / f"last_of_{ROLE}.npy", model)
        write(f"last_of_{ROLE}", {"version": version})
    own.die_before_the_end(sys.argv[4])


def serve(model: Any) -> None:
    holder = own.hold(model, die_in_the_middle if DIES else None)
    stats = holder.stats()
    if stats["is_server"] or ROLE == "replica":
        np.save(FOLDER / f"model_{ROLE}.npy", holder.model()[0])
    write(ROLE, {"stats": stats, "version": stats["version"]})


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
        serve(model)


if __name__ == "__main__":
    main()
