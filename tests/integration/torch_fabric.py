"""A worker that trains with PyTorch under MLfabric, as its first argument says.

torch_fabric.py alone OPTIMIZER    one worker, beside plain torch
torch_fabric.py local OUTER        one worker in local steps, beside the papers' rule
torch_fabric.py joint              all workers in step, beside one process on the joint batch
torch_fabric.py learns [FILE]      each at its pace; after ten steps, once there is that file; with
                                   EVERY, in local steps
"""

from __future__ import annotations

import copy
import hashlib
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

import pslite_ext.torch as mercury

RANK, WORKERS = int(os.environ["DMLC_TASK_ID"]), int(os.environ["DMLC_NUM_WORKER"])
STEPS = 20
OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "momentum": lambda p: torch.optim.SGD(p, lr=0.003, momentum=0.9, weight_decay=1e-3),
    "nesterov": lambda p: torch.optim.SGD(p, lr=0.003, momentum=0.8, nesterov=True),
    "plain": lambda p: torch.optim.SGD(p, lr=0.01),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01),
}


class Model(nn.Module):  # type: ignore[misc]
    """With what is frozen, not given to the optimizer, used at times, never used, and laid out in
    another order."""

    def __init__(self) -> None:
        super().__init__()
        self.frozen = nn.Parameter(torch.randn(3, dtype=torch.float64), requires_grad=False)
        self.aside = nn.Parameter(torch.ones(2))
        self.first, self.norm = nn.Conv2d(1, 4, 3, bias=False), nn.BatchNorm2d(4)
        self.first.weight.data = self.first.weight.data.to(memory_format=torch.channels_last)
        self.last, self.rare, self.never = nn.Linear(64, 2), nn.Linear(64, 2), nn.Linear(3, 5)
        self.register_buffer("drawn", torch.randint(1000, (2,)))

    def forward(self, x: Any, rare: bool) -> Any:
        y = torch.relu(self.norm(self.first(x))).flatten(1) + 0.1 * self.frozen.sum().float()
        return self.last(y) + self.rare(y) if rare else self.last(y)

    def trained(self) -> list[Any]:
        return [p for p in self.parameters() if p is not self.frozen and p is not self.aside]


def digest(model: Any) -> str:
    said = hashlib.sha256()
    for parameter in model.parameters():
        said.update(parameter.detach().contiguous().numpy().tobytes())
    return said.hexdigest()[:16]


def loss_of(model: Any, x: Any, rare: bool = False) -> Any:
    return (model(x, rare) - x.mean((2, 3)) * torch.tensor([1.0, -1.0])).pow(2).mean()


def train(
    model: Any, optimizer: Any, batches: Any, clip: float = 0.0, always: bool = False
) -> None:
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=12, gamma=0.5)
    for step, (some, more) in enumerate(batches):
        if hasattr(optimizer, "no_sync"):
            with optimizer.no_sync():
                loss_of(model, some).backward()
        else:
            loss_of(model, some).backward()
        loss_of(model, more, rare=always or step % 4 == 3).backward()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        optimizer.zero_grad()
        if clip:
            schedule.step()


def alone(name: str) -> None:
    """The server applies what this worker would, and what it has beside it stays what it was."""
    torch.manual_seed(1)
    model = Model()
    twin = copy.deepcopy(model)
    batches = torch.randn(STEPS, 2, 6, 1, 6, 6)
    model, optimizer = mercury.fabric(model, OPTIMIZERS[name](model.trained()), mode="async")
    assert (mercury.rank(), mercury.workers()) == (0, 1)
    # The server's momentum moves what has no gradient, too, and is not told of new rates.
    how = (0.5, False) if name in ("plain", "adamw") else (0.0, True)
    train(model, optimizer, batches, *how)
    theirs = OPTIMIZERS[name](twin.trained())
    train(twin, theirs, batches, *how)
    for ours, plain in zip(model.state_dict().values(), twin.state_dict().values()):
        torch.testing.assert_close(ours, plain, rtol=1e-4, atol=1e-6)
    assert isinstance(optimizer, type(theirs))
    assert optimizer.state_dict()["param_groups"] == theirs.state_dict()["param_groups"]
    fates = mercury.stats()["fabric"]
    assert fates["pushed"] == fates["committed"] >= STEPS
    assert not hasattr(copy.deepcopy(optimizer), "_mercury")
    print("as plain torch", flush=True)


OUTERS: dict[str, Callable[[Any], Any] | None] = {
    "average": None,
    "momentum": lambda p: torch.optim.SGD(p, lr=0.7, momentum=0.8),
    "nesterov": lambda p: torch.optim.SGD(p, lr=0.7, momentum=0.9, nesterov=True),
}


def local(name: str) -> None:
    """What the server adds is what DiLoCo's outer step makes of one worker's delta."""
    every, outer = 4, OUTERS[name]
    torch.manual_seed(1)
    model = Model()
    twin = copy.deepcopy(model)
    batches = torch.randn(2 * STEPS + 1, 6, 1, 6, 6)
    inner = OPTIMIZERS["adamw"](model.trained())
    model, optimizer = mercury.fabric(model, inner, mode="async", every=every, outer=outer)
    for batch in batches:
        loss_of(model, batch, rare=True).backward()
        optimizer.step()
        optimizer.zero_grad()
    optimizer.synchronize()  # with the step that is left
    theirs = OPTIMIZERS["adamw"](twin.trained())
    shared = [nn.Parameter(p.detach().clone()) for p in twin.trained()]
    outermost = (outer or (lambda p: torch.optim.SGD(p, lr=1.0)))(shared)
    for number, batch in enumerate(batches, 1):
        loss_of(twin, batch, rare=True).backward()
        theirs.step()
        theirs.zero_grad()
        if number % every == 0 or number == len(batches):
            with torch.no_grad():
                for copied, own in zip(shared, twin.trained()):
                    copied.grad = copied - own
            outermost.step()
            with torch.no_grad():
                for copied, own in zip(shared, twin.trained()):
                    own.copy_(copied)
    for ours, plain in zip(model.parameters(), twin.parameters()):
        torch.testing.assert_close(ours, plain, rtol=1e-3, atol=1e-5)
    fates = mercury.stats()["fabric"]
    assert fates["committed"] >= len(batches) // every + 1
    loss_of(model, batches[0]).backward()
    optimizer.step()  # which no update will have
    print("as the papers have it", flush=True)


def joint() -> None:
    torch.manual_seed(RANK)
    model = Model()
    # By worker 0's values; what only worker 0 had is the same on all.
    model, optimizer = mercury.fabric(model, OPTIMIZERS["momentum"](model.trained()), mode="sync")
    twin = copy.deepcopy(model)
    torch.manual_seed(0)
    first = Model()
    for ours, theirs in zip(first.state_dict().values(), twin.state_dict().values()):
        assert torch.equal(ours, theirs)
    torch.manual_seed(77)
    batches = torch.randn(STEPS, 2, WORKERS, 6, 1, 6, 6)
    model.eval()  # each batch of its own would have statistics of its own
    twin.eval()
    train(model, optimizer, batches[:, :, RANK], clip=0.5)
    train(twin, OPTIMIZERS["momentum"](twin.trained()), batches.flatten(2, 3), clip=0.5)
    for ours, theirs in zip(model.parameters(), twin.parameters()):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)
    for ours, theirs in zip(model.never.parameters(), first.never.parameters()):
        assert torch.equal(ours, theirs)  # no worker had a gradient, so nothing decays
    overflow(model, optimizer)
    print("as one process", digest(model), flush=True)


def overflow(model: Any, optimizer: Any) -> None:
    """On one worker, and no worker steps."""
    before = digest(model)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
    loss = loss_of(model, torch.randn(6, 1, 6, 6)) * (torch.inf if RANK == 1 else 1.0)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    assert digest(model) == before
    assert scaler.get_scale() == 1.0


def learns(stop: str) -> None:
    """At its own pace; in the end, all have the same model."""
    torch.manual_seed(RANK)
    model = Model()
    every = int(os.environ.get("EVERY", "1"))
    inner = OPTIMIZERS["momentum"](model.trained())
    model, optimizer = mercury.fabric(model, inner, every=every)
    optimizer.param_groups[0]["lr"] = 0.002
    test = torch.randn(100, 1, 6, 6)
    before = float(loss_of(model, test))
    for step in range(40):
        if stop and step == 10:
            print("ten steps", flush=True)
            while not Path(stop).exists():
                time.sleep(0.01)
        loss_of(model, torch.randn(16, 1, 6, 6)).backward()
        optimizer.step()
        optimizer.zero_grad()
    own = model.norm.running_mean.clone()
    optimizer.synchronize()
    assert torch.equal(own, model.norm.running_mean)
    assert float(loss_of(model, test)) < before / 2
    fates = mercury.stats()["fabric"]
    assert 40 // every <= fates["pushed"] <= 40 // every + 100
    print("learnt", digest(model), hashlib.sha256(own.numpy().tobytes()).hexdigest(), flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    way, *words = sys.argv[1:]
    if way == "alone":
        alone(*words)
    elif way == "local":
        local(*words)
    elif way == "joint":
        joint()
    else:
        learns(*words or [""])
    assert "mxnet" not in sys.modules
