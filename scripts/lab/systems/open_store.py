"""Who sums a workload's gradients: a KVStore of MXNet's, or a peer in the shape of one.

A peer's store has what `Gradients` asks of a KVStore, and no more: rank, num_workers, init,
pushpull in place, _barrier.
"""

from __future__ import annotations

import importlib
from typing import Any

_PEERS = {
    "horovod": "scripts.lab.systems.horovod_store",
    "mpi": "scripts.lab.systems.mpi_store",
}


def open_store(name: str) -> Any:
    if name in _PEERS:
        return importlib.import_module(_PEERS[name]).open_store()
    import mxnet as mx

    return mx.kv.create(name)
