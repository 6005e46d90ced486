"""One process of a measured job, whatever its role, on any MXNet 1.9.

Its argument is a `Config` as JSON. A worker speaks in lines that begin with MARK: `started` when
all are there, `begin` and `end` of what is measured, each with its clock, its processor time, its
memory and its interface's counters, and `result` at last. Servers and the scheduler run, and end,
inside `import mxnet`.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import mxnet  # noqa: F401  # servers and the scheduler come no further

from scripts.lab.systems.open_store import open_store
from scripts.lab.workloads.engine import Engine
from scripts.lab.workloads.flood import flood
from scripts.lab.workloads.gradient_kinds import gradients_of
from scripts.lab.workloads.gradients import Gradients
from scripts.lab.workloads.job_config import Config, workload_of
from scripts.lab.workloads.measurement import Sampler, say, usage
from scripts.lab.workloads.training_loop import train


def rounds(config: Config, gradients: Gradients, engine: Engine) -> dict[str, Any]:
    """All tensors at once, the last layer's first, then wait for all; no computation."""
    order = list(reversed(range(len(gradients.arrays))))
    times = []
    for turn in range(config.warmup + config.rounds):
        if turn == config.warmup:
            say("begin", **usage())
        for i in order:
            gradients.fill(i, turn)
        began = time.monotonic()
        for i in order:
            gradients.pushpull(i)
        for i in order:
            gradients.wait(i)
        times.append(time.monotonic() - began)
        for i in order:
            gradients.check(i, turn)
        if turn - config.warmup + 1 in config.reports:
            say("progress", rounds=turn - config.warmup + 1)
    say("end", **usage())
    return {"times_s": times[config.warmup :]}


def idle(config: Config, gradients: Gradients, engine: Engine) -> dict[str, Any]:
    time.sleep(1)
    say("begin", **usage())
    time.sleep(config.idle_s)
    say("end", **usage())
    return {}


def prophet_blocks() -> tuple[float, float, float]:
    """The rate that blocks are made for, and how many and how large they were until now."""
    import mxnet_plugins

    peers = mxnet_plugins.stats().get("peers", [])
    rate, blocks, size = (
        float(sum(p.get(name, 0) for p in peers))
        for name in ("block_rate_bytes_per_s", "blocks", "block_bytes")
    )
    return rate, blocks, size


MODES = {"train": train, "rounds": rounds, "flood": flood, "idle": idle}


def main() -> None:
    config = Config(**json.loads(sys.argv[1]))
    store = open_store(config.store) if config.store else None
    gradients = gradients_of(config.kind, workload_of(config.tensors), store)
    if store:
        store._barrier()
    say("started", **usage())
    sampler, blocks = Sampler(config.sample_s), Sampler(config.blocks_s, prophet_blocks)
    result = MODES[config.mode](config, gradients, Engine())
    if series := sampler.stop():
        result["series"] = series
    if seen := blocks.stop():
        result["blocks"] = seen
    if config.mode != "idle":
        gradients.check_zeros()
    say("result", wrong=gradients.wrong, bytes=gradients.workload.bytes, **result)


if __name__ == "__main__":
    main()
