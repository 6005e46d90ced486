"""The only worker of a job: with every optimizer its weights are plain torch's, bit for bit."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn

import pslite_ext.torch as mercury
from tests.integration.torch_reference import CASES, OPTIMIZERS, inputs, make, train, vector


def the_same(model: Any, optimizer: Any, batches: Any, clip: float, accumulate: int) -> None:
    twin = copy.deepcopy(model)
    wrapped, ours = mercury.wrap(model, optimizer(model.parameters()))
    assert wrapped is model
    plain = optimizer(twin.parameters())
    for one, its in ((model, ours), (twin, plain)):
        schedule = torch.optim.lr_scheduler.StepLR(its, step_size=1, gamma=0.5)
        train(one, its, batches, clip, accumulate)
        schedule.step()
    assert torch.equal(vector(model), vector(twin))
    assert str(ours.state_dict()) == str(plain.state_dict())


def main() -> None:
    torch.set_num_threads(1)
    batches = inputs(1)[:, 0]
    for name, clip, accumulate in CASES:
        the_same(make(), OPTIMIZERS[name], batches, clip, accumulate)
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(36, 2))
    model, optimizer = mercury.wrap(model, torch.optim.SGD(model.parameters(), lr=0.1))

    def closure() -> Any:
        optimizer.zero_grad()
        loss = model(torch.ones(2, 1, 5, 5)).pow(2).sum()
        loss.backward()
        return loss

    losses = [float(optimizer.step(closure)) for _ in range(3)]
    assert losses[0] > losses[-1], losses
    optimizer.synchronize()
    again = copy.deepcopy(model)
    mercury.wrap(again, torch.optim.SGD(again.parameters(), lr=0.1))
    assert all(peer["packets_sent"] == 0 for peer in mercury.stats()["peers"]), mercury.stats()
    print("the same bit for bit, and nothing travelled", flush=True)


if __name__ == "__main__":
    main()
