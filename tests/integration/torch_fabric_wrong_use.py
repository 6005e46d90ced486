"""A worker that uses mercury.fabric wrongly, as its argument says, and prints what it is told."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import torch
from torch import nn

import pslite_ext.torch as mercury
from pslite_ext.errors import PsliteError

SGD = torch.optim.SGD


def tell(what: Callable[[], Any]) -> None:
    try:
        what()
    except PsliteError as error:
        print("told:", error, flush=True)


def step(model: Any, optimizer: Any) -> None:
    model(torch.tensor([[1]])).sum().backward()
    optimizer.step()
    optimizer.zero_grad()


def model(rows: int = 3, **options: Any) -> Any:
    return nn.Sequential(nn.Embedding(rows, 2, **options), nn.Linear(2, 1))


def refused(optimizer: Callable[[Any], Any], mode: str = "async", **options: Any) -> None:
    its = model(**options)
    tell(lambda: mercury.fabric(its, optimizer(its), mode))


def refused_locally(every: Any, outer: Any = None) -> None:
    its = model()
    tell(lambda: mercury.fabric(its, SGD(its.parameters()), "async", every, outer))


def before() -> None:
    """What the job does not hear of."""
    refused(lambda its: SGD(its.parameters()), "stale:0")
    refused(lambda its: SGD(its.parameters()), "stale:2")
    refused(lambda its: SGD(model().parameters()))
    refused(lambda its: SGD(its.parameters()), dtype=torch.float64)
    groups = ({"momentum": 0.9}, {"momentum": 0.5})
    refused(lambda its: SGD([{"params": part.parameters(), **g} for part, g in zip(its, groups)]))
    refused(lambda its: SGD(its.parameters(), momentum=0.9, dampening=0.1))
    refused(lambda its: SGD(its.parameters(), momentum=1.5))
    refused(lambda its: torch.optim.LBFGS(its.parameters()))
    refused_locally(0)
    refused_locally(2.5)
    refused_locally(2, SGD([nn.Parameter(torch.ones(1))]))
    refused_locally(2, torch.optim.Adam)
    refused_locally(2, lambda copies: SGD(copies, lr=0.7, weight_decay=0.1))
    tell(lambda: mercury.wrap(its := model(), SGD(its.parameters())))
    tell(lambda: mercury.checkpoint("run", every=1, model=model()))
    store = torch.distributed.HashStore()
    tell(lambda: torch.distributed.init_process_group("mercury", store=store, rank=0, world_size=1))


def alone() -> None:
    before()
    its, optimizer = mercury.fabric(
        its := model(), SGD(its.parameters(), lr=0.1, momentum=0.9), "async"
    )
    refused(lambda its: SGD(its.parameters()))
    tell(lambda: mercury.fabric(its, optimizer))
    tell(optimizer.step)
    tell(lambda: optimizer.add_param_group({"params": [nn.Parameter(torch.ones(1))]}))
    assert len(optimizer.param_groups) == 1
    step(its, optimizer)
    optimizer.param_groups[0]["momentum"] = 0.8  # as CyclicLR does
    tell(lambda: step(its, optimizer))
    optimizer.param_groups[0]["momentum"] = 0.9
    optimizer.zero_grad()
    with patch.object(nn.parallel.DistributedDataParallel, "_active_ddp_module", its):
        tell(lambda: step(its, optimizer))
    its[0].sparse = True
    tell(lambda: step(its, optimizer))
    its[0].sparse = False
    optimizer.zero_grad()
    step(its, optimizer)
    its.load_state_dict(its.state_dict())
    tell(lambda: step(its, optimizer))
    its.double()
    optimizer.zero_grad()
    tell(lambda: step(its, optimizer))
    print("over", flush=True)


def different() -> None:
    """Of one size, so that only what workers say of their models tells."""
    rank = int(os.environ["DMLC_TASK_ID"])
    its = nn.Linear(3, 2, bias=False) if rank == 0 else nn.Linear(2, 3, bias=False)
    mercury.fabric(its, SGD(its.parameters(), lr=0.1), "async")


def led_otherwise() -> None:
    """One worker's learning rate is halved after the second step."""
    rank = int(os.environ["DMLC_TASK_ID"])
    its, optimizer = mercury.fabric(its := model(), SGD(its.parameters(), lr=0.1), "sync")
    for done in range(4):
        optimizer.param_groups[0]["lr"] = 0.05 if rank == 1 and done == 2 else 0.1
        step(its, optimizer)


def untold() -> None:
    """The script alone knows how far ahead a worker may be."""
    mercury.fabric(its := model(), SGD(its.parameters()), "stale:2")


if __name__ == "__main__":
    ways = (alone, different, led_otherwise, untold)
    {way.__name__: way for way in ways}[sys.argv[1]]()
