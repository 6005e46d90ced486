"""Whether training on a device gives the weights that one process gets from all workers' examples.

Twelve ways to train, each from the same first values. What computes in float32 may differ by
rounding alone; what computes in less, by a part of how far training has gone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pslite_ext.torch as mercury

# isort: split
import torch
from torch import nn

from scripts.lab.device.worker import device_of, digest
from scripts.lab.systems.rendezvous import place
from scripts.lab.workloads.measurement import say, usage

STEPS, BATCH = 8, 4


@dataclass(frozen=True)
class Way:
    optimizer: Callable[[Any], Any] = lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9)
    within: float = 1e-4  # of how far training has gone
    clip: float = 0.0
    accumulate: int = 1
    cast: Any = None
    scales: bool = False
    compiled: bool = False
    channels_last: bool = False
    dtype: Any = torch.float32
    stays: bool = False  # gradients are set to zero, not taken away


WAYS = {
    "SGD with momentum": Way(),
    "AdamW, fused": Way(lambda p: torch.optim.AdamW(p, lr=0.01, fused=True), 1e-3),
    "Adam, foreach": Way(lambda p: torch.optim.Adam(p, lr=0.01, foreach=True), 1e-3),
    "RMSprop": Way(lambda p: torch.optim.RMSprop(p, lr=0.003, eps=1e-4), 1e-3),
    "clipped by norm": Way(clip=0.1),
    "three backward passes a step": Way(accumulate=3),
    "channels_last": Way(channels_last=True),
    "gradients that stay": Way(stays=True),
    "compiled": Way(compiled=True),
    "autocast to bfloat16": Way(within=0.05, cast=torch.bfloat16),
    "autocast to float16, GradScaler": Way(within=0.02, cast=torch.float16, scales=True),
    "a bfloat16 model": Way(within=0.2, dtype=torch.bfloat16),
}


def make(way: Way, device: Any) -> Any:
    model = nn.Sequential(
        *(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2), nn.ReLU()),
        *(nn.Flatten(), nn.Linear(32 * 7 * 7, 300), nn.Tanh(), nn.Linear(300, 10)),
    )
    model = model.to(device, way.dtype)
    return model.to(memory_format=torch.channels_last) if way.channels_last else model


def train(way: Way, model: Any, optimizer: Any, batches: Any, labels: Any) -> None:
    device = batches.device
    scaler = torch.amp.GradScaler(device.type, init_scale=1024.0, enabled=way.scales)
    compute = model
    if way.compiled:
        compute = torch.compile(model, backend="inductor" if device.type == "cuda" else "aot_eager")
    for step in range(STEPS):
        for part in range(way.accumulate):
            number = step * way.accumulate + part
            x = batches[number].to(way.dtype)
            with torch.autocast(device.type, way.cast, enabled=way.cast is not None):
                guesses = compute(x)
            loss = nn.functional.cross_entropy(guesses.float(), labels[number])
            if part < way.accumulate - 1 and hasattr(optimizer, "no_sync"):
                with optimizer.no_sync():
                    scaler.scale(loss).backward()
            else:
                scaler.scale(loss).backward()
        if way.clip:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), way.clip)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=not way.stays)


def vector(model: Any) -> Any:
    return torch.cat([p.detach().double().flatten() for p in model.parameters()])


def examples(way: Way, workers: int, device: Any) -> tuple[Any, Any]:
    """By backward pass and worker; the same on all of them."""
    source = torch.Generator().manual_seed(7)
    shape = (STEPS * way.accumulate, workers, BATCH)
    pictures = torch.randn(*shape, 3, 16, 16, generator=source)
    return pictures.to(device), torch.randint(10, shape, generator=source).to(device)


def off(way: Way, rank: int, workers: int, device: Any) -> tuple[float, str]:
    """By which part of the way that training has gone, and a digest of the weights."""
    torch.manual_seed(1)
    twin = make(way, device)
    torch.manual_seed(1 + rank)  # worker 0's values count
    model = make(way, device)
    model, optimizer = mercury.wrap(model, way.optimizer(model.parameters()))
    x, y = examples(way, workers, device)
    train(way, model, optimizer, x[:, rank], y[:, rank])
    optimizer.synchronize()
    before = vector(twin)
    train(way, twin, way.optimizer(twin.parameters()), x.flatten(1, 2), y.flatten(1, 2))
    gone = (vector(twin) - before).norm()
    return float((vector(model) - vector(twin)).norm() / gone), digest(model.float())


def main() -> None:
    rank, workers, _ = place()
    torch.set_num_threads(1)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    device = device_of(rank)
    say("started", **usage())
    say("begin", **usage())
    wrong, digests = [], {}
    for name, way in WAYS.items():
        by, digests[name] = off(way, rank, workers, device)
        print(f"{name}: off by {by:.2g} of the way", flush=True)
        if not by <= way.within:
            wrong.append(f"{name}: off by {by:.3g} of the way, not {way.within:g}")
    say("end", **usage())
    say("result", wrong=wrong, digests=digests)


if __name__ == "__main__":
    main()
