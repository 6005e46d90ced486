"""A worker that trains with PyTorch on mercury, and the same model again with DDP over Gloo.

Its arguments are cases: model, optimizer, backwards a step, norm to clip to (0: none), `each` if
the sum of each of these backwards is taken, and `staged` if gradients go through memory of their
own, as a GPU's do. The weights are equal to rounding, and alike on all workers.
"""

from __future__ import annotations

import copy
import functools
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest.mock import patch

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

import pslite_ext.torch as mercury
from pslite_ext import _core
from pslite_ext.torch import staging

STEPS = 12
staging.CHUNK_BYTES = 50_000  # so that there are several
OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=1e-3),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01, foreach=True),
}


class LateCopies(staging.Copies):
    """A device that copies in order, a while after it has been told to."""

    def __init__(self) -> None:
        self._stream = ThreadPoolExecutor(1)

    def host_memory(self, like: Any, dtype: Any) -> Any:
        return self._spoilt(torch.empty_like(like, dtype=dtype))

    def begin_out(self, source: Any, host: Any) -> Callable[[], None]:
        mode = torch.is_inference_mode_enabled()
        return self._stream.submit(self._copy, source, host, mode).result

    def begin_in(self, host: Any, target: Any) -> Callable[[], None]:
        mode = torch.is_inference_mode_enabled()
        return self._stream.submit(self._copy_in, host, target, mode).result

    def _copy_in(self, host: Any, target: Any, mode: bool) -> None:
        self._copy(host, target, mode)
        self._spoilt(host)

    @staticmethod
    def _spoilt(host: Any) -> Any:
        """Whoever reads it before the next copy is found out."""
        return host.fill_(torch.nan if host.is_floating_point() else 77)

    @staticmethod
    def _copy(source: Any, target: Any, mode: bool) -> None:
        """In the mode of who has asked."""
        time.sleep(0.001)
        with torch.inference_mode(mode):
            target.copy_(source)


class Mlp(nn.Module):  # type: ignore[misc]
    """With a weight reached past its module, one used twice, one at times, and one never."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 300), nn.Linear(300, 300)
        self.reached, self.last = nn.Linear(300, 300), nn.Linear(300, 4)
        self.rare = nn.Linear(8, 4)
        self.never = nn.Linear(8, 4)

    def forward(self, x: Any, rare: bool) -> Any:
        y = torch.relu(self.second(torch.relu(self.first(x))))
        y = self.last(self.second(nn.functional.linear(y, self.reached.weight)))
        return y + self.rare(x) if rare else y


def cnn() -> Any:
    return nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(288, 4)
    )


def train(
    model: Any,
    optimizer: Any,
    batches: list[tuple[Any, ...]],
    accumulate: int = 1,
    clip: float | None = None,
    no_sync: Callable[[], Any] | None = None,
) -> list[float]:
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=3, gamma=0.5)
    norms = []
    for first in range(0, len(batches), accumulate):
        for i, (*inputs, target) in enumerate(batches[first : first + accumulate]):
            if i + 1 < accumulate and no_sync is not None:
                with no_sync():
                    nn.functional.cross_entropy(model(*inputs), target).backward()
            else:
                nn.functional.cross_entropy(model(*inputs), target).backward()
        if clip is not None:
            norms.append(float(nn.utils.clip_grad_norm_(model.parameters(), clip)))
        optimizer.step()
        optimizer.zero_grad()
        scheduler.step()
    return norms


def weights(model: Any) -> Any:
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])


def compare(case: str) -> None:
    kind, name, accumulations, norm, *more = case.split(":")
    accumulate, clip = int(accumulations), float(norm) or None
    torch.manual_seed(int(os.environ["DMLC_TASK_ID"]))  # worker 0's values count
    model = Mlp() if kind == "mlp" else cnn()
    sender = (lambda _: staging.Staged(LateCopies())) if "staged" in more else staging.sender_from
    with patch("pslite_ext.torch.training.sender_from", sender):
        model, optimizer = mercury.wrap(model, OPTIMIZERS[name](model.parameters()))
    rank = _core.rank()
    twin = copy.deepcopy(model)
    torch.manual_seed(100 + rank)
    batches: list[tuple[Any, ...]] = []
    for step in range(STEPS):
        target = torch.randint(0, 4, (6,))
        if kind == "mlp":  # one worker uses it at times, both, or none
            batches.append((torch.randn(6, 8), step % 4 == rank or step % 4 == 3, target))
        else:
            batches.append((torch.randn(6, 1, 8, 8), target))
    norms = train(
        model, optimizer, batches, accumulate, clip, None if "each" in more else optimizer.no_sync
    )
    state = model.state_dict()  # waits for what is left
    ours = weights(model)

    join_gloo(rank)
    other = DistributedDataParallel(twin, find_unused_parameters=kind == "mlp")
    theirs = train(
        other,
        OPTIMIZERS[name](twin.parameters()),
        batches,
        accumulate,
        clip,
        None if "each" in more else other.no_sync,
    )
    torch.testing.assert_close(ours, weights(twin), rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(torch.tensor(norms), torch.tensor(theirs))
    all_of_them = [torch.empty_like(ours) for _ in range(distributed.get_world_size())]
    distributed.all_gather(all_of_them, ours)
    assert all(torch.equal(one, ours) for one in all_of_them)
    if rank == 0 and kind == "cnn":  # each worker's own; DDP hands out those of worker 0
        torch.testing.assert_close(state["1.running_mean"], twin.state_dict()["1.running_mean"])
    assert "mxnet" not in sys.modules
    print("equal", case, flush=True)


@functools.cache
def join_gloo(rank: int) -> None:
    where = f"file://{os.environ['MEETING']}"
    workers = int(os.environ["DMLC_NUM_WORKER"])
    distributed.init_process_group("gloo", init_method=where, rank=rank, world_size=workers)


if __name__ == "__main__":
    torch.set_num_threads(1)
    for case in sys.argv[1:]:
        compare(case)
    distributed.destroy_process_group()
