"""A worker that trains a real model on its device, with torch's DDP or with nobody; its argument is
a `Config`, of which the rounds count. LAB_MODEL is which model, LAB_HOOK DDP's compression.

Rounds are timed together: to wait for a device after each would keep it from working ahead.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable
from typing import Any

import torch

from scripts.lab.device.models import TASKS
from scripts.lab.systems import torch_worker
from scripts.lab.systems.rendezvous import place
from scripts.lab.workloads.job_config import Config
from scripts.lab.workloads.measurement import say, usage

ALONE = "LAB_ALONE"  # set: nothing is exchanged, which shows how long computation takes


def device_of(rank: int) -> Any:
    """Workers share the devices that there are."""
    if not torch.cuda.is_available():
        return torch.device("cpu")
    device = torch.device("cuda", rank % torch.cuda.device_count())
    torch.cuda.set_device(device)
    return device


def finish(device: Any) -> None:
    """What the device has been told is done."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def digest(model: Any) -> str:
    hashed = hashlib.sha256()
    for parameter in model.parameters():
        hashed.update(parameter.detach().contiguous().cpu().numpy().tobytes())
    return hashed.hexdigest()[:16]


def train(rank: int, parallel: Callable[[Any, Any], tuple[Any, Any]]) -> None:
    config = Config(**json.loads(sys.argv[1]))
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    device = device_of(rank)
    task = TASKS[os.environ["LAB_MODEL"]](device, "LAB_SMALL" in os.environ)
    optimizer = torch.optim.SGD(task.model.parameters(), lr=1e-3, momentum=0.9)
    model, optimizer = parallel(task.model, optimizer)
    say("started", **usage())
    for turn in range(config.warmup + config.rounds):
        if turn == config.warmup:
            finish(device)
            say("begin", **usage())
        x, wanted = task.batch()
        with torch.autocast(device.type, torch.bfloat16):
            loss = task.loss(model(x), wanted)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    if hasattr(optimizer, "synchronize"):
        optimizer.synchronize()
    finish(device)
    say("end", **usage())
    size = sum(p.numel() * p.element_size() for p in task.model.parameters())
    say("result", digest=digest(task.model), bytes=size, loss=float(loss))


def main() -> None:
    if ALONE in os.environ:
        train(place()[0], lambda module, optimizer: (module, optimizer))
    else:
        rank, _ = torch_worker.meet(os.environ.get("LAB_BACKEND", "gloo"))
        train(rank, torch_worker.ddp)
        torch_worker.part()


if __name__ == "__main__":
    main()
