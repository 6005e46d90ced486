"""A worker that uses local steps wrongly, as its argument says, and prints what it is told."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

import pslite_ext.torch as mercury
from pslite_ext import _core
from pslite_ext.errors import InvalidArgumentError
from pslite_ext.torch.saved_state import TorchState


def tell(what: Callable[[], Any]) -> None:
    try:
        what()
    except (InvalidArgumentError, RuntimeError) as error:
        print("told:", error, flush=True)
    else:
        print("told: nothing", flush=True)


def pair() -> tuple[Any, Any]:
    model = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))
    return model, torch.optim.SGD(model.parameters(), lr=0.1)


def asked(*outer: Any, **arguments: Any) -> Callable[[], Any]:
    return lambda: mercury.local_steps(*pair(), *outer, **{"every": 4, **arguments})


def steps(model: Any, optimizer: Any, count: int) -> None:
    for _ in range(count):
        model(torch.ones(1, 3)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


class Parallel(nn.Module):  # type: ignore[misc]
    """By its name, what sums gradients."""


Parallel.__name__ = "DistributedDataParallel"


def alone() -> None:
    tell(lambda: mercury.local_steps(*pair()[::-1], every=4))
    tell(lambda: mercury.local_steps(pair()[0], pair()[1], every=4))
    model, optimizer = pair()
    around = Parallel()
    around.inner = model
    tell(lambda: mercury.local_steps(around, optimizer, every=4))
    zero = type("ZeroRedundancyOptimizer", (torch.optim.SGD,), {})
    tell(lambda: mercury.local_steps(model, zero(model.parameters(), lr=0.1), every=4))
    optimizer.step = lambda: None
    tell(lambda: mercury.local_steps(model, optimizer, every=4))
    for arguments in ({"every": 2, "fragments": 3}, {"delay": 4}, {"alpha": 2}, {"fragments": "x"}):
        tell(asked(**arguments))
    tell(asked(every=10, fragments=5))
    tell(asked(fragments=[]))
    tell(asked(fragments=["layer"]))
    tell(asked(fragments=nn.Sequential(nn.Linear(3, 2))))
    tell(lambda: mercury.local_steps(*(its := pair()), every=4, fragments=[its[0][0]]))
    tell(lambda: mercury.local_steps(*(its := pair()), every=4, fragments=[its[0], its[0][0]]))
    tell(asked(wire="auto"))
    tell(asked(wire={"heavy.*": "int8"}))
    tell(asked(pair()[1]))
    tell(asked(0.7))
    tell(asked(lambda _: pair()[1]))
    tell(asked(lambda _: None))
    tell(asked(torch.optim.LBFGS))
    tell(lambda: mercury.shared_weights(pair()[0]))
    model, optimizer = mercury.local_steps(*pair(), every=4)
    tell(lambda: mercury.local_steps(model, optimizer, every=4))
    tell(lambda: mercury.wrap(model, torch.optim.SGD(model.parameters(), lr=0.1)))
    with mercury.shared_weights(model), mercury.shared_weights(model):
        tell(lambda: steps(model, optimizer, 1))
        model.load_state_dict(model.state_dict())  # whatever it is, its own are put back
        tell(TorchState({"model": model}).capture_own)
        tell(TorchState({"model": model, "optimizer": optimizer}).capture_shared)
        tell(optimizer._mercury.standing)
    steps(model, optimizer, 3)
    more = nn.Parameter(torch.ones(1))
    optimizer.add_param_group({"params": [more]})
    more.grad = torch.ones(1)
    tell(lambda: steps(model, optimizer, 1))
    tell(lambda: steps(model, optimizer, 1))  # nor is anything trained after it
    model, optimizer = mercury.local_steps(*pair(), every=4)
    own = {name: value.clone() for name, value in model.state_dict().items()}
    model.load_state_dict(pair()[0].state_dict())
    model.load_state_dict(own)
    steps(model, optimizer, 1)  # its own are back
    model.load_state_dict(pair()[0].state_dict())
    tell(lambda: steps(model, optimizer, 1))
    model, optimizer = mercury.local_steps(*pair(), every=1)
    model.double()
    tell(lambda: model[0].weight.grad is None and optimizer.step())


def arguments() -> None:
    """What only several workers can do wrong: all are told, with both values."""
    rank = int(os.environ["DMLC_TASK_ID"])
    tell(asked(every=4 + 4 * rank))
    tell(asked(alpha=rank / 2))
    tell(asked(wire="bf16" if rank else "float32"))
    tell(asked(lambda copies: torch.optim.SGD(copies, lr=0.5 + rank)))
    model, _ = pair()
    tell(
        lambda: mercury.local_steps(model, torch.optim.SGD(model.parameters(), 1.0 + rank), every=4)
    )
    tell(asked() if rank else lambda: mercury.wrap(*pair()))


if __name__ == "__main__":
    torch.set_num_threads(1)
    {"alone": alone, "arguments": arguments}[sys.argv[1]]()
    _core.barrier()  # who ends fails the job, and the other is to hear of all this first
