"""A worker that trains a model of many memory layouts with every optimizer; one worker is late.

The reference is one process with all workers' examples in one batch, in float64: nothing but
rounding can hide a difference. Its arguments, `2 0` say, are how many parts the cases are cut
into, and which of them is wanted; with `cuda` after these, all of it is on that device.
"""

from __future__ import annotations

import copy
import hashlib
import os
import random
import sys
import time
import warnings
from typing import Any

import torch
from torch import nn

import pslite_ext.torch as mercury
from pslite_ext import _core
from tests.integration.torch_optimizers import optimizers

TORCHRUN = ("RANK", "WORLD_SIZE")
STEPS = 5
BATCH = 3
# They compute in float32 or less, whatever they are given.
ROUGH = ("bitsandbytes", "torchao")
# Rounding decides where it goes, so the reference has its gradients from each worker's part; of
# two workers, the sum is the same bit for bit.
CHAOTIC = ("pytorch_optimizer SOAP",)


class Layouts(nn.Module):  # type: ignore[misc]
    """Parameters of several memory orders, all dense, and one without elements."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3).to(memory_format=torch.channels_last)
        self.norm = nn.BatchNorm2d(4)
        self.deep = nn.Conv3d(2, 2, 2).to(memory_format=torch.channels_last_3d)
        self.turned = nn.Parameter(torch.randn(6, 5).t() * 0.3)
        self.mixed = nn.Parameter(torch.randn(3, 2, 4).permute(2, 0, 1) * 0.3)
        self.nothing = nn.Parameter(torch.zeros(0, 3))
        self.last = nn.Linear(22, 2)

    def forward(self, x: Any) -> Any:
        y = self.norm(self.conv(x.to(memory_format=torch.channels_last)))
        z = self.deep(torch.stack((x[:, :, :4], x[:, :, 1:]), 2)).mean((2, 3, 4))
        w = torch.einsum("bi,ij->bj", x[:, 0, 0, :5], self.turned)
        v = torch.einsum("bi,ijk->bjk", x[:, 1, 1, :4], self.mixed).flatten(1)
        y = torch.cat((y.mean((2, 3)), y.amax((2, 3)), z, w, v), 1)
        return self.last(torch.tanh(y))


def loss(model: Any, x: Any) -> Any:
    return (model(x) - x[:, 0, 0, :2].sin()).pow(2).mean()


def step(model: Any, optimizer: Any, x: Any) -> None:
    loss(model, x).backward()
    optimizer.step()
    optimizer.zero_grad()


def step_by_parts(model: Any, optimizer: Any, x: Any) -> None:
    parameters = list(model.parameters())
    parts = [
        torch.autograd.grad(loss(model, part), parameters, materialize_grads=True) for part in x
    ]
    for parameter, *gradients in zip(parameters, *parts):
        parameter.grad = sum(gradient / len(x) for gradient in gradients)
    optimizer.step()


def vector(model: Any) -> Any:
    return torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()])


def compare(name: str, make: Any, rank: int, workers: int, late: random.Random, device: str) -> str:
    torch.manual_seed(17)
    # Statistics of a part of the batch would not be the batch's.
    twin = Layouts().double().eval().to(device)
    model = copy.deepcopy(twin)
    model, optimizer = mercury.wrap(model, make(list(model.parameters())))
    everybody = torch.randn(STEPS, workers, BATCH, 2, 5, 6, dtype=torch.float64)
    everybody = everybody.to(device)
    for x in everybody[:, rank]:
        if rank == late.randrange(workers):
            time.sleep(0.004 * late.random())
        step(model, optimizer, x)
    ours = vector(model)
    before = vector(twin)
    plain = make(list(twin.parameters()))
    for x in everybody:
        if name in CHAOTIC:
            step_by_parts(twin, plain, x)
        else:
            step(twin, plain, x.flatten(0, 1))
    tolerance = 1e-4 if name.startswith(ROUGH) else 1e-9
    torch.testing.assert_close(
        ours, vector(twin), rtol=tolerance, atol=tolerance, msg=lambda text: f"{name}: {text}"
    )
    assert (ours - before).norm() > 1e-4, f"{name} has learned nothing"
    return hashlib.sha256(ours.cpu().numpy().tobytes()).hexdigest()[:16]


def main() -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.compiler.set_stance("force_eager")  # torchao compiles for minutes what takes a moment
    place = ("DMLC_TASK_ID", "DMLC_NUM_WORKER") if "DMLC_ROLE" in os.environ else TORCHRUN
    rank, workers = (int(os.environ[name]) for name in place)
    parts, which = (int(word) for word in sys.argv[1:3]) if sys.argv[1:] else (1, 0)
    device = sys.argv[3] if sys.argv[3:] else "cpu"
    made, missing = optimizers(device)
    seed = int(os.environ.get("MERCURY_TEST_SEED", str(time.time_ns() % 1000)))
    late = random.Random(seed)
    for name in list(made)[which::parts]:
        if workers == 2 or name not in CHAOTIC:
            print(name, compare(name, made[name], rank, workers, late, device), flush=True)
    assert _core.rank() == rank
    print("seed", seed if rank == 0 else "of worker 0", file=sys.stderr)
    print("missing:", *missing, flush=True)


if __name__ == "__main__":
    main()
