"""Who sums a workload's gradients: a KVStore of MXNet's, or a peer in the shape of one.

A peer's store has what `Exchange` asks of a KVStore, and no more: rank, num_workers, init,
pushpull in place, _barrier.
"""

from __future__ import annotations

import importlib
import os
import socket
import time
from typing import Any

VOICE = "LAB_VOICE"  # names what an MPI rank writes to in order to be heard as its own host
_PEERS = {"horovod": "horovod_store", "mpi": "mpi_store"}
_START_S = 60.0  # for the other workers to start


def open_store(name: str) -> Any:
    if name in _PEERS:
        return importlib.import_module(_PEERS[name]).open_store()
    import mxnet as mx

    return mx.kv.create(name)


def place() -> tuple[int, int, str]:
    """This worker's rank, the number of workers, and the first one's address."""
    return int(os.environ["LAB_RANK"]), int(os.environ["LAB_SIZE"]), os.environ["LAB_FIRST"]


def await_port(address: str, port: int) -> None:
    """Until somebody listens there."""
    deadline = time.monotonic() + _START_S
    while True:
        try:
            socket.create_connection((address, port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
