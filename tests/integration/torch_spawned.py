"""A script that starts its workers itself: no launcher, no variables.

Its arguments: a port, how (spawn or fork), and `fail` if worker 1 is to raise an error.
"""

from __future__ import annotations

import sys

import pslite_ext.torch  # noqa: F401 (it brings the backend)

# isort: split
import torch
import torch.distributed as dist

WORKERS = 2


def work(rank: int, port: str, fail: bool) -> None:
    meeting = f"tcp://127.0.0.1:{port}"
    dist.init_process_group("mercury", init_method=meeting, rank=rank, world_size=WORKERS)
    tensor = torch.full((1000,), rank + 1.0)
    dist.all_reduce(tensor)
    assert (tensor == 3).all()
    if fail and rank == 1:
        raise ValueError("of its own")
    if fail:
        dist.all_reduce(tensor)
    print(f"summed {rank}", flush=True)


if __name__ == "__main__":
    torch.multiprocessing.start_processes(
        work, (sys.argv[1], "fail" in sys.argv), WORKERS, start_method=sys.argv[2]
    )
