"""Horovod over Gloo: `horovod.mxnet`'s in-place all-reduce, as its DistributedTrainer calls it.

Its operations are the engine's own, its settings its defaults. Started without its launcher, which
wants ssh: the first worker answers the others' search for each other, as the launcher would.
"""

from __future__ import annotations

import os
import threading
from typing import Any

import mxnet as mx

from scripts.lab.systems.rendezvous import await_port, place
from scripts.lab.workloads.measurement import DEVICE

PORT = 9093


def _environment(rank: int, size: int, first: str) -> None:
    """What the launcher would set: every worker alone on its host."""
    settings = {
        "RANK": rank,
        "SIZE": size,
        "LOCAL_RANK": 0,
        "LOCAL_SIZE": 1,
        "CROSS_RANK": rank,
        "CROSS_SIZE": size,
        "HOSTNAME": f"worker{rank}",
        "CONTROLLER": "gloo",
        "CPU_OPERATIONS": "gloo",
        "GLOO_IFACE": os.environ[DEVICE],
        "GLOO_RENDEZVOUS_ADDR": first,
        "GLOO_RENDEZVOUS_PORT": PORT,
    }
    os.environ.update({f"HOROVOD_{name}": str(value) for name, value in settings.items()})


def _serve(size: int) -> None:
    from horovod.runner.common.util.hosts import SlotInfo
    from horovod.runner.http.http_server import RendezvousHandler, RendezvousHTTPServer

    server = RendezvousHTTPServer(("", PORT), RendezvousHandler, False)
    server.init([SlotInfo(f"worker{r}", r, 0, r, size, 1, size) for r in range(size)])
    threading.Thread(target=server.serve_forever, daemon=True).start()


class HorovodStore:
    def __init__(self, horovod: Any) -> None:
        self._horovod = horovod
        self.rank = int(horovod.rank())
        self.num_workers = int(horovod.size())

    def init(self, key: int, value: Any) -> None:
        self._horovod.broadcast_(value, root_rank=0, name=f"first {key}")
        value.wait_to_read()

    def pushpull(self, key: int, value: Any, out: Any, priority: int) -> None:
        assert value is out
        hvd = self._horovod
        hvd.allreduce_(value, op=hvd.Sum, name=str(key), priority=priority)

    def _barrier(self) -> None:
        one = mx.nd.ones((1,))
        self._horovod.allreduce_(one, name="barrier")
        one.wait_to_read()


def open_store() -> HorovodStore:
    rank, size, first = place()
    _environment(rank, size, first)
    if rank == 0:
        _serve(size)
    await_port(first, PORT)
    import horovod.mxnet as hvd

    hvd.init()
    return HorovodStore(hvd)
