"""A worker of those that train until they are told of the one that killed itself.

`MANNER VICTIM`: wrap, ddp, or something of the backend is how they train.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import pslite_ext.torch as mercury
from pslite_ext.errors import PsliteError

STEPS = 100000
OURS = torch.ones(10000)


class Lasting:
    """Python takes its time to end, and then a wait of Gloo's ends."""

    def __init__(self) -> None:
        self.sleep = time.sleep

    def __del__(self) -> None:
        if os.environ.get("RANK") == "2":
            self.sleep(3)


lasting = Lasting()
FATAL = 3  # step


def message() -> None:
    """The others wait for those that are alive and have nothing to say."""
    place = torch.empty(3)
    if dist.get_rank() == 2:
        dist.recv(place, 0)
    else:
        dist.recv(place)


def some() -> None:
    """One waits in a group of it and the one that is killed, the other for both of them."""
    pair = dist.distributed_c10d._find_pg_by_ranks_and_tag("", [0, 1])
    dist.all_reduce(OURS, group=pair if dist.get_rank() < 2 else None)


BACKEND: dict[str, Callable[[], object]] = {
    "sums": lambda: dist.all_reduce(OURS),
    "extremes": lambda: dist.all_reduce(OURS, op=dist.ReduceOp.MAX),
    "futures": lambda: dist.all_reduce(OURS, async_op=True).get_future().then(value).wait(),
    "messages": message,
    "group": some,
}


def value(future: torch.futures.Future[list[torch.Tensor]]) -> torch.Tensor:
    return future.value()[0]


def main() -> None:
    manner, victim = sys.argv[1], int(sys.argv[2])
    rank = int(os.environ["RANK"])
    torch.set_num_threads(1)
    model: torch.nn.Module = torch.nn.Sequential(torch.nn.Linear(30, 400), torch.nn.Linear(400, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    if manner == "wrap":
        model, optimizer = mercury.wrap(model, optimizer)
    else:
        dist.init_process_group("mercury")
        if manner == "group":
            dist.new_group([0, 1])
        if manner == "ddp":
            model = DistributedDataParallel(model)
    for step in range(STEPS):
        if rank == victim and (step == FATAL or manner in ("messages", "group")):
            time.sleep(0.3)  # the others wait by now
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            if manner in BACKEND:
                BACKEND[manner]()
            else:
                model(torch.randn(4, 30)).sum().backward()
                optimizer.step()
                optimizer.zero_grad()
        except (PsliteError, RuntimeError) as error:
            print(f"raised {type(error).__name__}: {error}", flush=True)
            raise


if __name__ == "__main__":
    main()
