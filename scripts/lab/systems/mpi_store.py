"""MPI's all-reduce: one MPI_Iallreduce in place for each tensor, overlapped with computation.

A thread starts them as the gradients become ready, in the order of `pushpull`: MPI wants the same
order on all ranks. MPI only moves while it is called, so the thread asks it again every POLL_S;
waiting inside MPI instead would burn a core.
"""

from __future__ import annotations

import os
import queue
import threading
from typing import Any

from scripts.lab.systems.mpi_host import VOICE
from scripts.lab.systems.rendezvous import place
from scripts.lab.workloads.engine import Complete, Engine, memory_of

POLL_S = 0.0001


class MpiStore:
    def __init__(self, mpi: Any) -> None:
        self._mpi = mpi
        self._world = mpi.COMM_WORLD
        self.rank = int(self._world.rank)
        self.num_workers = int(self._world.size)
        self._engine = Engine()
        self._memory: dict[int, Any] = {}
        self._pushed = 0
        self._ready: queue.SimpleQueue[tuple[int, int, Complete]] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="mpi", daemon=True).start()

    def init(self, key: int, value: Any) -> None:
        self._memory[key] = memory_of(value)
        self._world.Bcast(self._memory[key])

    def pushpull(self, key: int, value: Any, out: Any, priority: int) -> None:
        assert value is out
        number, self._pushed = self._pushed, self._pushed + 1

        def body(complete: Complete) -> None:
            self._ready.put((number, key, complete))

        self._engine.push(body, (), (value,), "allreduce")

    def _barrier(self) -> None:
        self._world.Barrier()

    def _run(self) -> None:
        early: dict[int, tuple[int, Complete]] = {}  # ready before their turn
        turn = 0
        requests: list[Any] = []
        completes: list[Complete] = []
        while True:
            try:
                number, key, complete = self._ready.get(timeout=POLL_S if requests else None)
                early[number] = (key, complete)
            except queue.Empty:
                pass
            while turn in early:
                key, complete = early.pop(turn)
                requests.append(self._world.Iallreduce(self._mpi.IN_PLACE, self._memory[key]))
                completes.append(complete)
                turn += 1
            if requests:
                done = set(self._mpi.Request.Testsome(requests) or ())
                for i in done:
                    completes[i]()
                requests = [r for i, r in enumerate(requests) if i not in done]
                completes = [c for i, c in enumerate(completes) if i not in done]


def open_store() -> MpiStore:
    voice = os.open(os.environ[VOICE], os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(voice, stream)
    from mpi4py import MPI

    store = MpiStore(MPI)
    assert (store.rank, store.num_workers) == place()[:2]
    return store
