"""A worker that uses pslite_ext.torch wrongly, as its argument says, and prints what it is told."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import torch
from torch import nn

import pslite_ext.torch as mercury
from pslite_ext import _core
from pslite_ext.errors import InvalidArgumentError, PeerLostError


def tell(what: Callable[[], Any]) -> None:
    try:
        what()
    except (InvalidArgumentError, PeerLostError) as error:  # or that another has ended for it
        print("told:", error, flush=True)


def pair() -> tuple[Any, Any]:
    model = nn.Linear(3, 2)
    return model, torch.optim.SGD(model.parameters(), lr=0.1)


class Averaging(nn.Module):  # type: ignore[misc]
    """By its name, what sums gradients, too."""


Averaging.__name__ = "DistributedDataParallel"


class Counted(nn.Parameter):  # type: ignore[misc]
    """It hears of its uses."""

    uses = 0

    @classmethod
    def __torch_function__(cls, *how: Any) -> Any:
        cls.uses += 1
        return super().__torch_function__(*how)


def step(model: Any, optimizer: Any) -> None:
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()


def alone() -> None:
    tell(lambda: mercury.wrap(*pair()[::-1]))
    model, optimizer = pair()
    tell(lambda: mercury.wrap(nn.Linear(3, 2), optimizer))
    optimizer.step = lambda: None
    tell(lambda: mercury.wrap(model, optimizer))
    tell(lambda: mercury.wrap(model, torch.optim.LBFGS(model.parameters())))
    zero = type("ZeroRedundancyOptimizer", (torch.optim.SGD,), {})
    tell(lambda: mercury.wrap(model, zero(model.parameters(), lr=0.1)))
    around = Averaging()
    around.inner = model
    tell(lambda: mercury.wrap(around, torch.optim.SGD(model.parameters(), lr=0.1)))
    gaps = nn.Module()
    gaps.every_other = nn.Parameter(torch.ones(6)[::2])
    tell(lambda: mercury.wrap(gaps, torch.optim.SGD(gaps.parameters(), lr=0.1)))
    tied = nn.Module()
    tied.one = nn.Parameter(torch.ones(6))
    tied.other = nn.Parameter(tied.one.data[3:])
    tell(lambda: mercury.wrap(tied, torch.optim.SGD(tied.parameters(), lr=0.1)))
    graph = nn.Linear(3, 2)
    graph.register_buffer("neighbours", torch.eye(3).to_sparse())
    tell(lambda: mercury.wrap(graph, torch.optim.SGD(graph.parameters(), lr=0.1)))
    noted = nn.Module()
    noted.counted = Counted(torch.ones(3))
    tell(lambda: mercury.wrap(noted, torch.optim.SGD(noted.parameters(), lr=0.1)))
    copied = nn.DataParallel(nn.Linear(3, 2))
    tell(lambda: mercury.wrap(copied, torch.optim.SGD(copied.parameters(), lr=0.1)))
    tell(lambda: mercury.wrap(*pair(), wire="bf17"))
    tell(lambda: mercury.wrap(*pair(), wire={"heavy.*": "int8"}))
    wide = nn.Linear(3, 2, dtype=torch.float64)
    tell(lambda: mercury.wrap(wide, torch.optim.SGD(wide.parameters()), wire={"weight": "bf16"}))
    model, optimizer = mercury.wrap(*pair())
    tell(lambda: mercury.wrap(model, optimizer))
    tell(lambda: mercury.wrap(model, torch.optim.SGD(model.parameters(), lr=0.1)))
    tell(optimizer.step)
    step(model, optimizer)
    tell(lambda: model.load_state_dict(model.state_dict(), assign=True))
    tell(lambda: optimizer.add_param_group({"params": [nn.Parameter(torch.ones(1))]}))
    step(model, optimizer)
    del optimizer.param_groups[0]["params"][0]
    tell(lambda: step(model, optimizer))
    rows = nn.Embedding(4, 2, sparse=True)
    _, optimizer = mercury.wrap(rows, torch.optim.SGD(rows.parameters(), lr=0.1))
    tell(lambda: (rows(torch.tensor([1])).sum().backward(), optimizer.step()))
    print("over", flush=True)


def different() -> None:
    model = nn.Linear(3, 2 + int(os.environ["DMLC_TASK_ID"]))
    tell(lambda: mercury.wrap(model, torch.optim.SGD(model.parameters(), lr=0.1)))
    _core.barrier()  # who ends fails the job, and the other is to hear of all this first


def several() -> None:
    """What only several workers can do wrong."""
    rank = int(os.environ["DMLC_TASK_ID"])
    model = nn.Module()
    model.weight = nn.Parameter(torch.ones(2, 3).t() if rank else torch.ones(3, 2))
    tell(lambda: mercury.wrap(model, torch.optim.SGD(model.parameters(), lr=0.1)))
    tell(lambda: mercury.wrap(*pair(), wire="bf16" if rank else "int8"))
    tell(lambda: mercury.wrap(*pair(), wire="fp16" if rank else None))
    model = nn.Linear(3, 2)
    tell(lambda: mercury.wrap(model, torch.optim.SGD(model.parameters(), lr=0.1 + rank)))
    model, optimizer = nn.Linear(3, 2), None
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    if rank == 0:
        step(model, optimizer)  # as if from a checkpoint
    tell(lambda: mercury.wrap(model, optimizer))

    def trained(change: Callable[[Any, Any], None]) -> None:
        model, optimizer = mercury.wrap(*pair())
        step(model, optimizer)
        if rank == 0:
            change(model, optimizer)
        step(model, optimizer)
        optimizer.synchronize()

    tell(lambda: trained(lambda _, optimizer: optimizer.param_groups[0].update(lr=0.05)))
    tell(lambda: trained(lambda model, _: model.load_state_dict(nn.Linear(3, 2).state_dict())))
    tell(lambda: trained(lambda _, its: its.load_state_dict(its.state_dict())))

    def skipped() -> None:
        """One worker alone leaves out a step."""
        model, optimizer = mercury.wrap(*pair())
        for number in range(2):
            model(torch.ones(1, 3)).sum().backward()
            if number or rank:
                optimizer.step()
            optimizer.zero_grad()
        optimizer.synchronize()

    tell(skipped)
    model = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 2))
    mercury.wrap(model, torch.optim.SGD(model[1].parameters(), lr=0.1))

    def twice() -> None:
        """In DistributedDataParallel as well, as far as its forward shows it."""
        model, optimizer = mercury.wrap(*pair())
        with patch.object(nn.parallel.DistributedDataParallel, "_active_ddp_module", model):
            step(model, optimizer)

    tell(twice)
    model, optimizer = mercury.wrap(*pair())
    step(model, optimizer)
    of_data_parallel = model._replicate_for_data_parallel()
    tell(lambda: of_data_parallel(torch.ones(1, 3)))
    model.double()
    tell(lambda: (model(torch.ones(1, 3).double()).sum().backward(), optimizer.step()))
    tell(lambda: torch.jit.script(model))
    _core.barrier()  # as above
    print("over", flush=True)


class Failing(torch.optim.SGD):  # type: ignore[misc]
    """Its third step fails."""

    mercury_per_parameter = True
    steps = 0

    def step(self, closure: Any = None) -> Any:
        self.steps += 1
        if self.steps == 3:
            raise MemoryError("no room for the third step")
        return super().step(closure)


def interrupted_update() -> None:
    """Ctrl-C comes when some gradients are where the optimizer looks for them."""
    model, optimizer = mercury.wrap(*pair())
    step(model, optimizer)
    effects = [None, KeyboardInterrupt, None, None]
    ctrl_c = patch("pslite_ext.torch.updates.set_raw_grad", side_effect=effects)
    with contextlib.suppress(KeyboardInterrupt), ctrl_c:
        optimizer.synchronize()
    try:
        optimizer.synchronize()
    except RuntimeError as error:
        print("interrupted:", error, flush=True)


def last_update(caught: bool = False) -> None:
    """The last update fails: at the end of the script, or where the script catches it."""
    model = nn.Linear(3, 2)
    model, optimizer = mercury.wrap(model, Failing(model.parameters(), lr=0.1))
    for number in range(3):
        if number == 2 and os.environ["DMLC_TASK_ID"] == "1":
            time.sleep(0.2)  # so that worker 0's update is still to come
        step(model, optimizer) if not caught or number < 2 else None
    if caught:
        for _ in range(2):
            try:
                step(model, optimizer)
                optimizer.synchronize()
            except (MemoryError, RuntimeError) as error:
                print("caught:", type(error).__name__, error, flush=True)
        _core.barrier()  # who ends fails the job, and the other is to come to its own failure first
    print("over", flush=True)


def caught_update() -> None:
    interrupted_update()
    last_update(caught=True)


if __name__ == "__main__":
    for case in (alone, different, several, last_update, caught_update):
        if case.__name__ == sys.argv[1]:
            case()
