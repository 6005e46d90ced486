"""A worker that uses pslite_ext.torch wrongly, as its argument says, and prints what it is told."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

import pslite_ext.torch as mercury
from pslite_ext.errors import InvalidArgumentError


def tell(what: Callable[[], Any]) -> None:
    try:
        what()
    except InvalidArgumentError as error:
        print("told:", error, flush=True)


def pair() -> tuple[Any, Any]:
    model = nn.Linear(3, 2)
    return model, torch.optim.SGD(model.parameters(), lr=0.1)


def alone() -> None:
    tell(lambda: mercury.wrap(*pair()[::-1]))
    model, optimizer = pair()
    tell(lambda: mercury.wrap(nn.Linear(3, 2), optimizer))
    torch.optim.lr_scheduler.StepLR(optimizer, 1)
    tell(lambda: mercury.wrap(model, optimizer))
    tell(lambda: mercury.wrap(model, torch.optim.LBFGS(model.parameters())))
    model, optimizer = mercury.wrap(*pair())
    tell(lambda: mercury.wrap(model, optimizer))
    tell(lambda: mercury.wrap(model, torch.optim.SGD(model.parameters(), lr=0.1)))
    tell(optimizer.step)
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    tell(lambda: optimizer.add_param_group({"params": [nn.Parameter(torch.ones(1))]}))
    del optimizer.param_groups[0]["params"][0]
    tell(optimizer.step)
    rows = nn.Embedding(4, 2, sparse=True)
    _, optimizer = mercury.wrap(rows, torch.optim.SGD(rows.parameters(), lr=0.1))
    tell(lambda: (rows(torch.tensor([1])).sum().backward(), optimizer.step()))
    print("over", flush=True)


def different() -> None:
    model = nn.Linear(3, 2 + int(os.environ["DMLC_TASK_ID"]))
    tell(lambda: mercury.wrap(model, torch.optim.SGD(model.parameters(), lr=0.1)))


if __name__ == "__main__":
    cases: dict[str, Callable[[], None]] = {"alone": alone, "different": different}
    cases[sys.argv[1]]()
