"""Gradients on the wire: each step's are what the codec's formula makes of all workers' own, all
workers' weights are the same bits, and as few bytes leave as are promised."""

from __future__ import annotations

import copy
import functools
import hashlib
import os
import sys
from typing import Any
from unittest.mock import patch

import torch
from torch import distributed, nn

from pslite_ext import _core
from pslite_ext import torch as mercury
from pslite_ext.torch import staging
from pslite_ext.torch.choosing import NARROWER, Choice
from tests.integration.torch_training import LateCopies

STEPS = int(os.environ.get("WIRE_STEPS", "20"))
HALVES = {"bf16": torch.bfloat16, "fp16": torch.float16}
WIDTH = 400


class Net(nn.Module):  # type: ignore[misc]
    """Large and small ones, and one of another type."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Linear(WIDTH, WIDTH)
        self.small = nn.Linear(WIDTH, 4)
        self.wide = nn.Linear(4, 2, dtype=torch.float64)

    def forward(self, x: Any) -> Any:
        return self.wide(self.small(torch.tanh(self.table(x))).double())


class Changing(Choice):
    """By turns, each for a few steps."""

    steps = 0

    @property
    def word(self) -> str:
        return NARROWER[self.steps // 5 % len(NARROWER)]

    def heard(self, took_s: float, waited_s: float) -> bool:
        assert 0 < took_s < 60
        assert 0 <= waited_s <= took_s + 1e-3
        self.steps += 1
        return self.steps % 5 == 0


def word_of(wire: Any, name: str) -> str:
    """As what the parameter's gradient is to travel."""
    if name.startswith("wide"):
        return "none"
    some = "int8" if name.startswith("table") else "float32"
    word = wire if isinstance(wire, str) else some
    if word == "int8" and name != "table.weight":
        return "bf16"
    return "none" if word == "float32" else word


def check_sum(word: str, each: list[Any], got: Any) -> None:
    """`each` worker's own gradient, divided by their number."""
    exact = torch.stack([one.double() for one in each]).sum(0)
    if word == "none":
        torch.testing.assert_close(got.double(), exact, rtol=1e-5, atol=1e-8)
    elif word in HALVES:
        half = HALVES[word]
        if len(each) == 2:
            rounded = torch.stack([one.to(half).float() for one in each]).sum(0).to(half).float()
            assert torch.equal(got, rounded)
        # Each is rounded once, or, together with its host's others, not even that; then the sum.
        step = 2.0 ** (-8 if word == "bf16" else -11)
        most = step * (sum(one.abs() for one in [*each, exact]) + exact.abs()) + 1e-7
        assert ((got - exact).abs() <= most).all()
    else:
        # Half a step of each worker's block, and half of the sum's.
        most = sum(one.abs().max() for one in [*each, exact])
        assert float((got - exact).abs().max()) <= float(most) / 127 * 0.51
        error = ((got - exact) ** 2).sum() / (exact**2).sum()
        assert 1e-6 < float(error) < 3e-3, error


@functools.cache
def join_gloo(rank: int) -> None:
    where = f"file://{os.environ['MEETING']}"
    workers = int(os.environ["DMLC_NUM_WORKER"])
    distributed.init_process_group("gloo", init_method=where, rank=rank, world_size=workers)


def train(case: str) -> None:
    given, _, how = case.partition(":")
    wire: Any = {"table*": "int8", "*": "float32"} if given == "some" else given
    torch.manual_seed(7)
    model = Net()
    sender = (lambda _: staging.Staged(LateCopies())) if how else staging.sender_from
    training = "pslite_ext.torch.training"
    with patch(f"{training}.sender_from", sender), patch(f"{training}.Choice", Changing):
        asked = None if how == "job" else wire
        model, optimizer = mercury.wrap(
            model, torch.optim.SGD(model.parameters(), lr=0.01), wire=asked
        )
    rank, workers = _core.rank(), int(os.environ["DMLC_NUM_WORKER"])
    join_gloo(rank)
    torch.manual_seed(100 + rank)
    chosen = set()
    for _ in range(STEPS):
        x, y = torch.randn(8, WIDTH), torch.randn(8, 2, dtype=torch.float64)
        weights = copy.deepcopy(model.state_dict())
        twin = Net()
        twin.load_state_dict(weights)
        nn.functional.mse_loss(twin(x), y).backward()
        nn.functional.mse_loss(model(x), y).backward()
        if given == "auto":
            wire = optimizer._mercury._chosen
            chosen.add(wire)
        for (name, parameter), own in zip(model.named_parameters(), twin.parameters()):
            mine = own.grad / workers
            each = [torch.empty_like(mine) for _ in range(workers)]
            distributed.all_gather(each, mine)
            check_sum(word_of(wire, name), each, parameter.grad)
        optimizer.step()
        optimizer.zero_grad()
    assert given != "auto" or chosen == {*NARROWER}
    digest = hashlib.sha256()
    for value in model.state_dict().values():
        digest.update(value.numpy().tobytes())
    print("wire", case, digest.hexdigest()[:16], flush=True)


def scaled() -> None:
    """What is not finite stays so on all workers, and GradScaler steps past it."""
    for wire in ("bf16", "fp16", "int8"):
        model = nn.Linear(200, 200)
        model, optimizer = mercury.wrap(
            model, torch.optim.SGD(model.parameters(), lr=0.1), wire=wire
        )
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        before = copy.deepcopy(model.state_dict())
        x = torch.ones(2, 200)
        if _core.rank() == 0:
            x[0, 5] = float("inf")
        scaler.scale(model(x).sum()).backward()
        bad = ~torch.isfinite(model.weight.grad)
        assert bad[:, 5].all(), wire
        assert wire == "int8" or not bad[:, :5].any(), wire
        scaler.step(optimizer)
        scaler.update()
        assert all(torch.equal(a, b) for a, b in zip(before.values(), model.state_dict().values()))
        assert scaler.get_scale() < 1024.0
    print("scaled", flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    for case in sys.argv[1:]:
        if case == "scaled":
            scaled()
        else:
            train(case)
    distributed.destroy_process_group()
