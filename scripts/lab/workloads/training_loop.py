"""The training loop of the emulated GPU.

Of the last iteration it notes when each layer's gradients were ready, when all of their sums were
back, and when its forward pass began and ended.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from scripts.lab.workloads.allowance import until_allowed
from scripts.lab.workloads.emulated_gpu import EmulatedGpu
from scripts.lab.workloads.engine import Engine
from scripts.lab.workloads.gradients import Gradients
from scripts.lab.workloads.job_config import Config
from scripts.lab.workloads.measurement import say, usage

MOMENTS = ("ready", "back", "forward", "done")  # of each layer


def train(config: Config, gradients: Gradients, engine: Engine) -> dict[str, Any]:
    """Backward from the last layer to the first, forward from the first to the last."""
    gpu = EmulatedGpu(engine)
    workload, layers = gradients.workload, gradients.workload.layers()
    total = config.warmup + config.rounds
    pace = config.slowness if gradients.rank == config.slow_rank else 1.0
    ends: list[float] = []
    ended = threading.Semaphore(0)
    marks: dict[str, dict[str, float]] = {}
    timeline: list[dict[str, float]] = [{} for _ in layers]

    def backward(number: int, turn: int) -> None:
        layer = layers[number]

        def at_end(now: float) -> None:
            timeline[number]["ready"] = now  # the last iteration's stays
            for i in layer:
                gradients.fill(i, turn)

        seconds = pace * sum(workload.tensors[i].backward_s for i in layer)
        gpu.compute(seconds, writes=[gradients.arrays[i] for i in layer], at_end=at_end)
        for i in reversed(layer):
            gradients.pushpull(i)
            if turn == total - 1:
                engine.note(gradients.arrays[i], lambda now: back(number, now))

    def back(number: int, now: float) -> None:
        timeline[number]["back"] = max(now, timeline[number].get("back", now))

    def forward(number: int, turn: int) -> None:
        layer = layers[number]

        def at_start(now: float) -> None:
            timeline[number]["forward"] = now
            for i in layer:
                gradients.check(i, turn)

        def at_end(now: float) -> None:
            timeline[number]["done"] = now
            if number < len(layers) - 1:
                return
            ends.append(now)
            if config.allowed_file:
                say("round", turn=turn, t=now, wrong=gradients.wrong)
            if turn == config.warmup - 1:
                marks["begin"] = usage()
            elif turn == total - 1:
                marks["end"] = usage()
            ended.release()

        gpu.compute(
            pace * sum(workload.tensors[i].forward_s for i in layer),
            reads=[gradients.arrays[i] for i in layer],
            at_start=at_start,
            at_end=at_end,
        )

    for turn in range(total):
        if config.allowed_file:
            until_allowed(Path(config.allowed_file), turn)
        for number in reversed(range(len(layers))):
            backward(number, turn)
        for number in range(len(layers)):
            forward(number, turn)
        # One iteration ahead of the GPU, as a loop is that reads a loss now and then.
        if turn > 0:
            ended.acquire()
        if turn == config.warmup:
            say("begin", **marks["begin"])
    gpu.wait()
    say("end", **marks["end"])
    gpu.close()
    times = [b - a for a, b in zip(ends[config.warmup - 1 :], ends[config.warmup :])]
    return {"times_s": times, "timeline": [_since(ends[-2], moments) for moments in timeline]}


def _since(start: float, moments: dict[str, float]) -> list[float]:
    """Seconds since the iteration began, in the order of MOMENTS."""
    return [moments[what] - start for what in MOMENTS]
