"""A wrapped model beside the same one without any of us: trained alike, they are to be alike."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

import pslite_ext.torch as mercury
from pslite_ext import _core

STEPS = 4


def layers() -> Any:
    return nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 2))


def sgd(model: Any) -> Any:
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)


def pair(make: Callable[[], Any] = layers, optimizer: Callable[[Any], Any] = sgd) -> Any:
    """A wrapped model with its optimizer, and the same without any of us."""
    torch.manual_seed(3)
    alone = make()
    model = copy.deepcopy(alone)
    return (*mercury.wrap(model, optimizer(model)), alone, optimizer(alone))


def inputs(dtype: Any = torch.float32) -> list[Any]:
    torch.manual_seed(5)
    return [torch.randn(5, 4, dtype=dtype, requires_grad=True) for _ in range(STEPS)]


def step(model: Any, optimizer: Any, x: Any) -> None:
    model(x).float().pow(2).sum().backward()
    optimizer.step()
    optimizer.zero_grad()


def alike(model: Any, alone: Any) -> None:
    """Whatever is left of the last step is waited for."""
    for parameter, own in zip(model.parameters(), alone.parameters()):
        torch.testing.assert_close(parameter, own)


def train_both(model: Any, optimizer: Any, alone: Any, other: Any, **how: Any) -> None:
    for x in inputs(**how):
        step(model, optimizer, x)
        step(alone, other, x)
    alike(model, alone)


def late(model: Any, optimizer: Any, alone: Any, other: Any, x: Any) -> None:
    """A step whose update is not done when it returns: worker 1 is late."""
    if _core.rank() == 1:
        time.sleep(0.03)
    step(model, optimizer, x)
    step(alone, other, x)
