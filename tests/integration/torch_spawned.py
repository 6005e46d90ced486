"""A script that spawns its workers: no launcher, no variables; `fail`: worker 1 raises an error."""

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
    torch.multiprocessing.spawn(work, (sys.argv[1], "fail" in sys.argv), nprocs=WORKERS)
