"""A worker whose hooks fire twice (reentrant checkpoints), and whose model is copied and pickled.

All workers have the same data, so a model that trains alone has the same weights.
"""

from __future__ import annotations

import copy
import pickle
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import pslite_ext.torch as mercury


class Twice(nn.Module):  # type: ignore[misc]
    """One module used twice; in training it is computed once more on the way back."""

    def __init__(self) -> None:
        super().__init__()
        self.often, self.last = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x: Any) -> Any:
        for _ in range(2):
            x = checkpoint(self.often, x, use_reentrant=True)
        return self.last(x)


def step(model: Any, optimizer: Any, x: Any) -> None:
    model(x).pow(2).sum().backward()
    optimizer.step()
    optimizer.zero_grad()


if __name__ == "__main__":
    model = Twice()
    model, optimizer = mercury.wrap(model, torch.optim.SGD(model.parameters(), lr=0.1))
    alone = copy.deepcopy(model)
    other = torch.optim.SGD(alone.parameters(), lr=0.1)
    torch.manual_seed(5)
    for _ in range(4):
        x = torch.randn(3, 4, requires_grad=True)
        step(model, optimizer, x)
        step(alone, other, x)
    optimizer.synchronize()
    pickled = pickle.loads(pickle.dumps(model))
    for parameter, own in zip(model.parameters(), alone.parameters()):
        torch.testing.assert_close(parameter, own, check_dtype=True)
    torch.testing.assert_close(model(x), alone(x))
    assert torch.equal(pickled(x), model(x))
    print("alike", flush=True)
