"""A process of a job under MLfabric: it pushes random updates, and writes down what became of them.

    fabric_training.py FOLDER STEPS [NODES SIGNAL]

Those nodes, such as server_0,replica_0, send themselves the signal in the middle: a replica that
has become the server once another one follows it.
"""

from __future__ import annotations

import json
import sys
import time
from contextlib import suppress
from typing import Any

import numpy as np

from pslite_ext import fabric
from pslite_ext.errors import InvalidArgumentError
from tests.integration import fabric_process as own
from tests.integration.fabric_process import DIES, FOLDER, LENGTH, RANK, ROLE

SHAPE = (250, 400)  # 400 kB: several packets
DIES_AT = 8  # versions, or steps of a worker
IDLE_S = 2.5  # after that, nothing that it was sent is still to be confirmed


def work(model: Any) -> None:
    worker = fabric.register_as_worker(model)
    random = np.random.default_rng(RANK)
    updates = []
    versions = []
    for step in range(LENGTH):
        if DIES and step == DIES_AT:
            time.sleep(IDLE_S if sys.argv[4] == "SIGSTOP" else 0)
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
    fates = [worker.fate(number) for number in range(1, LENGTH + 1)]
    told = worker.stats()
    assert got.shape == SHAPE
    np.save(FOLDER / f"updates_{RANK}.npy", np.stack(updates))
    write(ROLE, {"stats": told, "versions": versions, "fates": fates})


def die_in_the_middle(holder: fabric.Holder) -> None:
    own.wait_for_version(holder, DIES_AT)
    follower = FOLDER / f"follows_{RANK + 1}"
    while ROLE == "replica" and "server_0" in own.VICTIMS and not follower.exists():
        time.sleep(0.005)
    with suppress(InvalidArgumentError):  # one of several servers: it has a part
        model, version = holder.model()
        np.save(FOLDER / f"last_of_{ROLE}.npy", model)
        write(f"last_of_{ROLE}", {"version": version})
    own.die_before_the_end(sys.argv[4])


def say_that_it_follows(holder: fabric.Holder) -> None:
    """A replica in reserve: it has got the model, and an update after that."""
    own.wait_for_version(holder, 1)
    own.wait_for_version(holder, holder.stats()["version"] + 1)
    (FOLDER / f"follows_{RANK}").touch()


def serve(model: Any) -> None:
    in_reserve = ROLE == "replica" and RANK > 0
    beside = die_in_the_middle if DIES else say_that_it_follows if in_reserve else None
    holder = own.hold(model, beside)
    stats = holder.stats()
    if stats["is_server"] or ROLE == "replica":
        np.save(FOLDER / f"model_{own.NAME}.npy", holder.model()[0])
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
