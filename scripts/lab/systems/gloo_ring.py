"""Gloo's all-reduce, a ring, as PyTorch brings it."""

from __future__ import annotations

import os
from typing import Any

import torch
from torch import distributed

from scripts.lab.systems.racer import Summed, race
from scripts.lab.systems.rendezvous import place
from scripts.lab.workloads.measurement import DEVICE

PORT = 9095


def all_reduce(vector: Any) -> None:
    distributed.all_reduce(torch.from_numpy(vector))


def main() -> None:
    rank, workers, first = place()
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = os.environ[DEVICE]
    distributed.init_process_group(
        "gloo", init_method=f"tcp://{first}:{PORT}", rank=rank, world_size=workers
    )
    race(Summed(all_reduce))
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
