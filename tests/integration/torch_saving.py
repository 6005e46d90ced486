"""Training that writes checkpoints: FOLDER STEPS [DIES]. At that step a process that has begun
with the first kills itself.

A model with statistics and dropout, data drawn at random, a scheduler: whatever is not saved
changes the digest that is said in the end. With WAY "local steps", a fragment is under way as
checkpoints are written; with "apart", the optimizer has no more than the first layers.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from pslite_ext import _core
from pslite_ext import torch as mercury
from pslite_ext.saving import part_file

FOLDER, STEPS = sys.argv[1], int(sys.argv[2])
DIES = int(sys.argv[3]) if len(sys.argv) > 3 else 0
EVERY = 5
WAY = os.environ.get("WAY", "")
LOCAL, APART = WAY == "local steps", WAY == "apart"
SLOW_S = float(os.environ.get("SLOW_S", "0"))  # worker 1's disk


class Versioned(nn.Linear):  # type: ignore[misc]
    """Of a later version when it loads what the job that died has saved."""

    _version = 2 if DIES else 3

    def _load_from_state_dict(self, state: Any, prefix: str, metadata: Any, *lists: Any) -> None:
        assert metadata.get("version") == 2, metadata
        super()._load_from_state_dict(state, prefix, metadata, *lists)


def digest(*states: Any) -> str:
    said = hashlib.sha256()
    for state in states:
        for value in state.values():
            said.update(value.numpy().tobytes())
    return said.hexdigest()[:16]


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(3)
    layers = [nn.Linear(64, 128), nn.BatchNorm1d(128), nn.Dropout(0.5), Versioned(128, 4)]
    model = nn.Sequential(*layers)
    given = model[:3] if APART else model
    optimizer = torch.optim.AdamW(given.parameters(), lr=0.01)
    last = torch.optim.AdamW(layers[-1].parameters(), lr=0.01)
    if LOCAL:
        mercury.local_steps(model, optimizer, every=6, fragments=2, delay=2, alpha=0.25)
    else:
        model, optimizer = mercury.wrap(model, optimizer)
    curve = np.linspace(1.0, 0.1, STEPS + 1)
    schedulers = [
        torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: curve[step]),
        torch.optim.lr_scheduler.MultiStepLR(optimizer, [2]),
    ]
    scheduler = torch.optim.lr_scheduler.SequentialLR(optimizer, schedulers, [STEPS - 5])
    rank = _core.rank()
    for seed in (random.seed, np.random.seed, torch.manual_seed):
        seed(100 + rank)
    folder = FOLDER.replace("RANK", str(rank))
    if rank == 1:
        write = part_file.write

        def slowly(path: Path, dump: Callable[[Any], None]) -> None:
            time.sleep(SLOW_S)
            write(path, dump)

        part_file.write = slowly
    whole = nn.Sequential(model)  # whatever holds them, weights in local steps are each worker's
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    objects = {"model": whole, "optimizer": optimizer, "scheduler": scheduler, "average": average}
    if APART:
        objects["last"] = last
    saved = mercury.checkpoint(folder, every=EVERY, **objects)
    print("begins after", saved.steps, flush=True)
    dies = DIES if saved.steps == 0 else 0
    for step in range(saved.steps, STEPS):
        if step == dies > 0:
            if not SLOW_S:
                saved.wait()
                _core.barrier()  # in local steps, others may be some steps behind
            os.kill(os.getpid(), signal.SIGKILL)
        x = torch.randn(16, 64) * random.random() + float(np.random.rand())
        model(x).square().sum().backward()
        optimizer.step()
        if APART:
            last.step()
        model.zero_grad()
        scheduler.step()
        average.update_parameters(model)
        saved.step()
    parameters = {name: p.detach() for name, p in given.named_parameters()}
    own = {**model.state_dict(), **average.state_dict()}
    own = {name: value.clone() for name, value in own.items()}
    with mercury.shared_weights(model) if LOCAL else contextlib.nullcontext():
        print("same", digest(parameters), optimizer.param_groups[0]["lr"], flush=True)
    print("own", digest(own), random.random(), float(torch.rand(1)))


if __name__ == "__main__":
    main()
