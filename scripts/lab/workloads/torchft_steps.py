"""A worker under torchft that hardly computes: when each step that it kept ended, how many it threw
away, and a digest of its weights in the end. It is a replica group of its own, begins once the file
GO is there, and counts steps once all WORKERS are in.

Usage: torchft_steps.py STEPS ELEMENTS TENSORS WORKERS RANK ADDRESS LIGHTHOUSE PATIENCE_S GO.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import signal
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
from torch import distributed, nn
from torchft import DistributedDataParallel, Manager, Optimizer, ProcessGroupGloo

from scripts.lab.workloads.timed_steps import BEGUN_AFTER


class Sums(nn.Module):
    """Its gradients are `scales`, everywhere in a tensor."""

    def __init__(self, elements: int, tensors: int) -> None:
        super().__init__()
        self.all = nn.ParameterList([nn.Parameter(torch.zeros(elements)) for _ in range(tensors)])

    def forward(self, scales: list[int]) -> torch.Tensor:
        return torch.stack([its.sum() * scale for its, scale in zip(self.all, scales)]).sum()


def main(
    steps: int,
    elements: int,
    tensors: int,
    workers: int,
    rank: int,
    address: str,
    lighthouse: str,
    patience: str,
    go: str,
) -> None:
    print("ready", flush=True)
    ready = time.monotonic()
    while not Path(go).exists():
        time.sleep(0.01)
    store = distributed.TCPStore(address, 0, is_master=True, wait_for_workers=False)
    waits = timedelta(seconds=float(patience))
    model = Sums(elements, tensors)
    inner = torch.optim.SGD(model.parameters(), lr=0.1)

    def load(state: dict[str, Any]) -> None:
        model.load_state_dict(state["model"])
        inner.load_state_dict(state["optimizer"])

    manager = Manager(
        pg=ProcessGroupGloo(timeout=waits),
        load_state_dict=load,
        state_dict=lambda: {"model": model.state_dict(), "optimizer": inner.state_dict()},
        min_replica_size=1,
        timeout=waits,
        rank=0,
        world_size=1,
        store_addr=address,
        store_port=store.port,
        lighthouse_addr=lighthouse,
        replica_id=str(rank),
        hostname=address,
        init_sync=False,  # all begin with zeros
    )
    wrapped, optimizer = DistributedDataParallel(manager, model), Optimizer(manager, inner)
    ends: list[float] = []
    discarded = 0
    while (step := manager.current_step()) < steps:
        optimizer.zero_grad()
        wrapped([1 + (step + key + rank) % 5 for key in range(tensors)]).backward()
        optimizer.step()
        if manager.current_step() == step:
            discarded += 1
        elif ends or manager.num_participants() == workers:
            ends.append(time.monotonic())
            if len(ends) == BEGUN_AFTER:
                print("begun", flush=True)
    seen = hashlib.sha1(b"".join(its.detach().numpy().tobytes() for its in model.all))
    told = {"ready": ready, "ends": ends, "discarded": discarded, "digest": seen.hexdigest()}
    print(json.dumps(told), flush=True)
    signal.pause()  # the others may still need it


if __name__ == "__main__":
    logging.basicConfig(level=os.environ.get("LOG_LEVEL", "ERROR"))
    torch.set_num_threads(1)
    steps, elements, tensors, workers, rank = map(int, sys.argv[1:6])
    main(steps, elements, tensors, workers, rank, *sys.argv[6:])
