"""A node of a race under MLfabric, whatever its role.

LAB_WITHOUT names parts of the planner that the scheduler is to do without: order, aggregation.
LAB_CHECKPOINT_EVERY: after so many versions the server writes a checkpoint.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pslite_ext import fabric
from pslite_ext.fabric.options import ALL_OF_IT, Planning
from scripts.lab.systems import checkpoints
from scripts.lab.systems.racer import race, told
from scripts.lab.workloads.race import first_vector


class UnderFabric:
    def __init__(self) -> None:
        self._worker = fabric.register(first_vector(told()))
        self.rank, self.workers = self._worker.rank, self._worker.num_workers
        self._pushed = 0  # the number of the last update
        self.together = os.environ.get("MERCURY_FABRIC_MODE") == "sync"

    def get(self) -> Any:
        return self._worker.get()

    @property
    def applied(self) -> bool:
        return self._worker.fate(self._pushed) == "committed"

    def push(self, update: Any) -> None:
        self._pushed = self._worker.push(update)

    def figures(self) -> dict[str, Any]:
        return {"updates": self._worker.stats()}

    def leave(self) -> None:
        self._worker.leave()


def schedule() -> None:
    without = os.environ.get("LAB_WITHOUT", "").split()
    aggregators = 0 if "aggregation" in without else ALL_OF_IT.aggregators
    fabric.register_as_scheduler(Planning(aggregators, ordered="order" not in without)).serve()


def main() -> None:
    role = os.environ["DMLC_ROLE"]
    if role == "scheduler":
        schedule()
    elif role == "server" and (every := os.environ.get("LAB_CHECKPOINT_EVERY")) is not None:
        server = fabric.register_as_server(first_vector(told()))
        checkpoints.serve(server, Path(os.environ["MERCURY_TRACE_DIR"]), int(every))
    else:
        race(UnderFabric())


if __name__ == "__main__":
    main()
