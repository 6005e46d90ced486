"""A worker of torch's DistributedDataParallel over Gloo; its argument is a `Config`.

The loop of training_loop.py as torch has it: a layer is an autograd function that takes its time
without using a core, and whose gradients DDP's hooks put into buckets and reduce while backward
goes on. Buckets, hooks and what waits for what are DDP's own, its settings the defaults.

Time is kept as the emulated GPU keeps it: a layer ends its nominal time after the one before it,
however late its thread was woken; after backward it begins again when the sums are in.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from scripts.lab.systems.rendezvous import place
from scripts.lab.workloads import gradient_values
from scripts.lab.workloads.job_config import Config, workload_of
from scripts.lab.workloads.measurement import DEVICE, Sampler, say, usage
from scripts.lab.workloads.workload import Workload

PORT = 9095


class Stream:
    """The emulated GPU's clock."""

    def __init__(self, pace: float) -> None:
        self._pace = pace
        self._ended_at = time.monotonic()

    def begin(self) -> None:
        """What comes next waited for something until now."""
        self._ended_at = max(self._ended_at, time.monotonic())

    def compute(self, seconds: float) -> None:
        self._ended_at += self._pace * seconds
        left = self._ended_at - time.monotonic()
        if left > 0:
            time.sleep(left)


class Layers(torch.nn.Module):
    def __init__(self, workload: Workload, stream: Stream, rank: int, workers: int) -> None:
        super().__init__()
        self.workload = workload
        self.stream = stream
        self.rank, self.workers = rank, workers
        self.turn = 0  # the round of the next backward pass
        self.wrong: list[str] = []
        self.positions = [gradient_values.positions(t.elements) for t in workload.tensors]
        self.weights = torch.nn.ParameterList(torch.zeros(t.elements) for t in workload.tensors)

    def forward(self, x: Any) -> Any:
        for layer in self.workload.layers():
            x = _Layer.apply(x, self, layer, *(self.weights[i] for i in layer))
        return x

    def gradient(self, i: int) -> Any:
        """Zero but for the samples, as they are for all systems."""
        gradient = torch.zeros(self.workload.tensors[i].elements)
        for n, position in enumerate(self.positions[i]):
            gradient[position] = gradient_values.pushed(i, self.turn, n, self.rank)
        return gradient

    def check(self, layer: list[int], turn: int) -> None:
        """The last round's sums, as averages."""
        for i in layer:
            for n, position in enumerate(self.positions[i]):
                wanted = gradient_values.due(i, turn, n, self.workers)
                got = self.weights[i].grad[position].item() * self.workers
                if abs(got - wanted) > 1e-5 * wanted and len(self.wrong) < 5:
                    name = self.workload.tensors[i].name
                    self.wrong.append(f"round {turn}, {name}[{position}]: {got}, not {wanted}")

    def check_zeros(self) -> None:
        for i, weight in enumerate(self.weights):
            weight.grad[self.positions[i]] = 0
            if weight.grad.any():
                self.wrong.append(f"{self.workload.tensors[i].name}: zeros did not stay zeros")


class _Layer(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, layers: Layers, layer: list[int], *weights: Any) -> Any:
        ctx.layers, ctx.layer = layers, layer
        if layers.turn > 0:
            layers.check(layer, layers.turn - 1)
        layers.stream.compute(sum(layers.workload.tensors[i].forward_s for i in layer))
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        layers, layer = ctx.layers, ctx.layer
        made = [layers.gradient(i) for i in layer]
        layers.stream.compute(sum(layers.workload.tensors[i].backward_s for i in layer))
        return (gradient, None, None, *made)


def train(config: Config, layers: Layers, model: Any) -> list[float]:
    x = torch.zeros(1, requires_grad=True)
    ends = []
    layers.stream.begin()
    out = model(x)
    for turn in range(config.warmup + config.rounds):
        model.zero_grad(set_to_none=True)
        out.sum().backward()  # returns when all buckets are in
        layers.turn = turn + 1
        layers.stream.begin()
        out = model(x)
        ends.append(time.monotonic())
        if turn == config.warmup - 1:
            say("begin", **usage())
    say("end", **usage())
    return [b - a for a, b in zip(ends[config.warmup - 1 :], ends[config.warmup :])]


def main() -> None:
    config = Config(**json.loads(sys.argv[1]))
    if config.mode != "train":
        raise SystemExit(f"torch-ddp can only train, not '{config.mode}'")
    rank, workers, first = place()
    os.environ["GLOO_SOCKET_IFNAME"] = os.environ[DEVICE]
    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo", init_method=f"tcp://{first}:{PORT}", rank=rank, world_size=workers
    )
    workload = workload_of(config.tensors)
    stream = Stream(config.slowness if rank == config.slow_rank else 1.0)
    layers = Layers(workload, stream, rank, workers)
    model = DistributedDataParallel(layers, gradient_as_bucket_view=True)
    distributed.barrier()
    sampler = Sampler(config.sample_s)
    say("started", **usage())
    result: dict[str, Any] = {"times_s": train(config, layers, model)}
    if series := sampler.stop():
        result["series"] = series
    layers.check_zeros()
    distributed.destroy_process_group()
    say("result", wrong=layers.wrong, bytes=workload.bytes, **result)


if __name__ == "__main__":
    main()
