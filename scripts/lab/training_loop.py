"""The training loop of the emulated GPU."""

from __future__ import annotations

import threading
from typing import Any

from emulated_gpu import EmulatedGpu
from engine import Engine
from exchange import Exchange
from measured import Config, say, usage


def train(config: Config, exchange: Exchange, engine: Engine) -> dict[str, Any]:
    """Backward from the last layer to the first, forward from the first to the last."""
    gpu = EmulatedGpu(engine)
    workload, layers = exchange.workload, exchange.workload.layers()
    total = config.warmup + config.rounds
    pace = config.slowness if exchange.rank == config.slow_rank else 1.0
    ends: list[float] = []
    ended = threading.Semaphore(0)
    marks: dict[str, dict[str, float]] = {}

    def backward(layer: list[int], turn: int) -> None:
        def at_end(_now: float) -> None:
            for i in layer:
                exchange.fill(i, turn)

        seconds = pace * sum(workload.tensors[i].backward_s for i in layer)
        gpu.compute(seconds, writes=[exchange.gradients[i] for i in layer], at_end=at_end)
        for i in reversed(layer):
            exchange.pushpull(i)

    def forward(layer: list[int], turn: int, last: bool) -> None:
        def at_start(_now: float) -> None:
            for i in layer:
                exchange.check(i, turn)

        def at_end(now: float) -> None:
            ends.append(now)
            if turn == config.warmup - 1:
                marks["begin"] = usage()
            elif turn == total - 1:
                marks["end"] = usage()
            ended.release()

        gpu.compute(
            pace * sum(workload.tensors[i].forward_s for i in layer),
            reads=[exchange.gradients[i] for i in layer],
            at_start=at_start,
            at_end=at_end if last else None,
        )

    for turn in range(total):
        for layer in reversed(layers):
            backward(layer, turn)
        for layer in layers:
            forward(layer, turn, layer is layers[-1])
        # One iteration ahead of the GPU, as a loop is that reads a loss now and then.
        if turn > 0:
            ended.acquire()
        if turn == config.warmup:
            say("begin", **marks["begin"])
    gpu.wait()
    say("end", **marks["end"])
    gpu.close()
    times = [b - a for a, b in zip(ends[config.warmup - 1 :], ends[config.warmup :])]
    return {"times_s": times}
