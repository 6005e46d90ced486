"""A worker of torch's DistributedDataParallel over Gloo; its argument is a `Config`.

The loop of training_loop.py as torch has it: a layer is an autograd function that takes its time
without using a core, and whose gradients DDP's hooks put into buckets and reduce while backward
goes on. Hooks and what waits for what are DDP's own; so is the size of buckets, unless
LAB_BUCKET_MB is another. The optimizer only looks at the sums.

Time is kept as the emulated GPU keeps it: a layer ends its nominal time after the one before it,
however late its thread was woken; after it had to wait for sums it begins when they are in.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any, NoReturn

import torch
from torch import distributed
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

from scripts.lab.systems import torch_transformer
from scripts.lab.systems.rendezvous import place
from scripts.lab.workloads import gradient_values
from scripts.lab.workloads.job_config import Config, workload_of
from scripts.lab.workloads.measurement import DEVICE, Sampler, say, usage
from scripts.lab.workloads.workload import Workload

PORT = 9095
HOOKS: dict[str, Callable[[Any, Any], Any]] = {
    # Without its name and types, DDP does not ask for NCCL: Gloo sums these, too.
    "bf16": lambda state, bucket: default_hooks.bf16_compress_hook(state, bucket),
    "fp16": default_hooks.fp16_compress_hook,
}
PLAIN_STEPS = "10"  # of PowerSGD, before it begins, unless LAB_PLAIN_STEPS is another
WAITED_S = 2e-4  # longer than a hook takes that has nothing to wait for


class Stream:
    """The emulated GPU's clock."""

    def __init__(self, pace: float) -> None:
        self._pace = pace
        self._ended_at = time.monotonic()

    def begin(self) -> None:
        """What comes next waited for something until now."""
        self._ended_at = max(self._ended_at, time.monotonic())

    def behind_s(self) -> float:
        """By how much what it has computed should have ended earlier."""
        return max(0.0, time.monotonic() - self._ended_at)

    def compute(self, seconds: float) -> None:
        self._ended_at += self._pace * seconds
        left = self._ended_at - time.monotonic()
        if left > 0:
            time.sleep(left)


class Layers(torch.nn.Module):
    """A module for each layer, with its own parameters."""

    def __init__(self, workload: Workload, stream: Stream, rank: int, workers: int) -> None:
        super().__init__()
        self.workload = workload
        self.stream = stream
        self.rank, self.workers = rank, workers
        self.turn = 0  # the round of the next backward pass
        self.wrong: list[str] = []
        self.positions = [gradient_values.positions(t.elements) for t in workload.tensors]
        self.layers = torch.nn.ModuleList(Layer(self, layer) for layer in workload.layers())
        numbered = (zip(layer.parameters(), layer.tensors) for layer in self.layers)
        self.place = dict(pair for layer in numbered for pair in layer)

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            self.called = time.monotonic()
            x = layer(x)
        return x

    def gradient(self, i: int) -> Any:
        """Zero but for the samples, as they are for all systems."""
        gradient = torch.zeros(self.workload.tensors[i].shape)
        for n, position in enumerate(self.positions[i]):
            gradient[position] = gradient_values.pushed(i, self.turn, n, self.rank)
        return gradient

    def check(self, parameter: Any, turn: int) -> None:
        """A round's sum, as average."""
        i = self.place[parameter]
        part = gradient_values.ROUNDED if "LAB_ROUNDED" in os.environ else 1e-5
        for n, position in enumerate(self.positions[i]):
            wanted = gradient_values.due(i, turn, n, self.workers)
            got = parameter.grad[position].item() * self.workers
            if abs(got - wanted) > part * wanted and len(self.wrong) < 5:
                name = self.workload.tensors[i].name
                self.wrong.append(f"round {turn}, {name}[{position}]: {got}, not {wanted}")

    def check_zeros(self) -> None:
        for weight, i in self.place.items():
            weight.grad[self.positions[i]] = 0
            if weight.grad.any():
                self.wrong.append(f"{self.workload.tensors[i].name}: zeros did not stay zeros")


class Layer(torch.nn.Module):
    def __init__(self, whole: Layers, tensors: list[int]) -> None:
        super().__init__()
        self.tensors = tensors
        self.whole = [whole]  # in a list: it is not a part of this module
        for i in tensors:
            weight = torch.nn.Parameter(torch.zeros(whole.workload.tensors[i].shape))
            self.register_parameter(f"weight{i}", weight)

    def forward(self, x: Any) -> Any:
        (whole,) = self.whole
        if time.monotonic() - whole.called > WAITED_S:
            whole.stream.begin()
        return _Layer.apply(x, whole, self.tensors, *self.parameters())


class _Layer(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, layers: Layers, layer: list[int], *weights: Any) -> Any:
        ctx.layers, ctx.layer = layers, layer
        layers.stream.compute(sum(layers.workload.tensors[i].forward_s for i in layer))
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        layers, layer = ctx.layers, ctx.layer
        made = [layers.gradient(i) for i in layer]
        layers.stream.compute(sum(layers.workload.tensors[i].backward_s for i in layer))
        return (gradient, None, None, *made)


class Looks(torch.optim.Optimizer):
    """At the sums: it changes nothing."""

    mercury_per_parameter = True  # as torch's own are

    def __init__(self, layers: Layers) -> None:
        self.layers = layers
        super().__init__(layers.parameters(), {})

    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            for parameter in group["params"]:
                self.layers.check(parameter, self.layers.turn - 1)


def train(config: Config, layers: Layers, model: Any, optimizer: Any) -> list[float]:
    x = torch.zeros(1, requires_grad=True)
    ends = []
    layers.stream.begin()
    out = model(x)
    for turn in range(config.warmup + config.rounds):
        optimizer.zero_grad()
        out.sum().backward()
        layers.turn = turn + 1
        called = time.monotonic()
        optimizer.step()
        # DDP's backward has waited for all; so has a step that does not go by parameters.
        if optimizer.__class__ is Looks or time.monotonic() - called > WAITED_S:
            layers.stream.begin()
        out = model(x)
        ends.append(time.monotonic())
        if turn == config.warmup - 1:
            say("begin", **usage())
    behind = layers.stream.behind_s()
    say("end", **usage())
    times = [b - a for a, b in zip(ends[config.warmup - 1 :], ends[config.warmup :])]
    # What waits without the device's clock hearing of it looks as if it computed for nothing.
    if behind > 0.1 * sum(times):
        layers.wrong.append(f"the emulated device is {behind:.3f} s behind its clock")
    return times


def measure(rank: int, workers: int, parallel: Callable[[Any, Any], tuple[Any, Any]]) -> None:
    """`parallel` makes of a model and its optimizer what trains them on all workers.

    With LAB_TRANSFORMER the model is a real one.
    """
    config = Config(**json.loads(sys.argv[1]))
    if config.mode != "train":
        raise SystemExit(f"torch can only train, not '{config.mode}'")
    torch.set_num_threads(1)
    if "LAB_TRANSFORMER" in os.environ:
        return torch_transformer.train(rank, config.rounds, config.warmup, parallel)
    workload = workload_of(config.tensors)
    stream = Stream(config.slowness if rank == config.slow_rank else 1.0)
    layers = Layers(workload, stream, rank, workers)
    model, optimizer = parallel(layers, Looks(layers))
    sampler = Sampler(config.sample_s)
    say("started", **usage())
    result: dict[str, Any] = {"times_s": train(config, layers, model, optimizer)}
    if series := sampler.stop():
        result["series"] = series
    layers.check_zeros()
    return say("result", wrong=layers.wrong, bytes=workload.bytes, **result)


def ddp(module: Any, optimizer: Any) -> tuple[Any, Any]:
    size = os.environ.get("LAB_BUCKET_MB")
    buckets = {} if size is None else {"bucket_cap_mb": float(size)}
    model = DistributedDataParallel(module, gradient_as_bucket_view=True, **buckets)
    hook, _, rank = os.environ.get("LAB_HOOK", "").partition(" ")
    if hook == "powersgd":
        plain = int(os.environ.get("LAB_PLAIN_STEPS", PLAIN_STEPS))
        state = powerSGD_hook.PowerSGDState(
            None, matrix_approximation_rank=int(rank), start_powerSGD_iter=plain
        )
        model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    elif hook:
        model.register_comm_hook(None, HOOKS[hook])
    distributed.barrier()
    return model, optimizer


def meet(backend: str = "gloo") -> tuple[int, int]:
    """All workers of the job; this one's rank, and how many they are."""
    rank, workers, first = place()
    connections = int(os.environ.get("LAB_CONNECTIONS", "1"))  # to each other worker
    os.environ["GLOO_SOCKET_IFNAME"] = ",".join([os.environ[DEVICE]] * connections)
    os.environ["NCCL_SOCKET_IFNAME"] = os.environ[DEVICE]
    distributed.init_process_group(
        backend, init_method=f"tcp://{first}:{PORT}", rank=rank, world_size=workers
    )
    return rank, workers


def part() -> NoReturn:
    """Ends this process, which has said all, without taking Python down: a thread of Gloo's that
    asks for its lock then, as its calls back to DDP's hooks do, would be ended with an abort."""
    distributed.destroy_process_group()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def main() -> None:
    measure(*meet(), ddp)
    part()


if __name__ == "__main__":
    main()
