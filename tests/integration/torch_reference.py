"""A worker that trains with every optimizer, clipped or not, accumulating or not.

Its argument, 0 or 1, is a half of these cases that has every pair of two; without it, all.

The reference is one process that has all workers' examples in one batch: the mean of the workers'
mean gradients is the gradient of that batch's mean, which is what DDP computes, too (that is
tested against DDP itself). In float64 nothing but rounding can hide a difference.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

import pslite_ext.torch as mercury
from pslite_ext import _core

STEPS = 100
BATCH = 3
OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=1e-3),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.05),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.005, momentum=0.5),
}
CASES = list(itertools.product(OPTIMIZERS, (0.0, 0.4), (1, 4)))  # norm to clip to, backwards a step


def make() -> Any:
    return nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 2)).double()


def inputs(workers: int) -> Any:
    """Of all workers, for the backwards of all steps; the same for every case."""
    torch.manual_seed(11)
    return torch.randn(STEPS * 4, workers, BATCH, 5, dtype=torch.float64)


def train(model: Any, optimizer: Any, batches: Any, clip: float, accumulate: int) -> None:
    turns = iter(batches)
    for _ in range(STEPS):
        for left in reversed(range(accumulate)):
            x = next(turns)
            loss = (model(x) - x[:, :2].sin()).pow(2).mean()
            if left and hasattr(optimizer, "no_sync"):
                with optimizer.no_sync():
                    loss.backward()
            else:
                loss.backward()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        optimizer.zero_grad()


def vector(model: Any) -> Any:
    return nn.utils.parameters_to_vector(model.parameters()).detach()


if __name__ == "__main__":
    torch.set_num_threads(1)
    rank, workers = int(os.environ["DMLC_TASK_ID"]), int(os.environ["DMLC_NUM_WORKER"])
    everybody = inputs(workers)
    own, whole = everybody[:, rank], everybody.flatten(1, 2)
    half = [int(word) for word in sys.argv[1:]] or [0, 1]
    cases = [case for case in CASES if (case[1] > 0) ^ (case[2] > 1) in half]
    for number, (name, clip, accumulate) in enumerate(cases):
        torch.manual_seed(number)
        twin = make()
        torch.manual_seed(number + rank)  # worker 0's values count
        model = make()
        model, optimizer = mercury.wrap(model, OPTIMIZERS[name](model.parameters()))
        assert _core.rank() == rank
        train(model, optimizer, own, clip, accumulate)
        optimizer.synchronize()
        ours = vector(model)
        if number % workers == rank:
            before = vector(twin)
            train(twin, OPTIMIZERS[name](twin.parameters()), whole, clip, accumulate)
            torch.testing.assert_close(ours, vector(twin), rtol=1e-9, atol=1e-12)
            assert (ours - before).norm() > 0.1, "it has learned nothing"
        digest = hashlib.sha256(ours.numpy().tobytes()).hexdigest()[:16]
        print(f"{name} clip {clip} accumulate {accumulate}: {digest}", flush=True)
