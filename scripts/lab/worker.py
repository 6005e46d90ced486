"""One process of a measured job, whatever its role, on any MXNet 1.9: worker.py CONFIG.

CONFIG is `measured.Config` as JSON. A worker speaks in lines that begin with MARK: `started` when
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
from engine import Engine
from exchange import Exchange
from flood import flood
from measured import Config, Sampler, say, usage, workload_of
from stores import open_store
from training_loop import train


def rounds(config: Config, exchange: Exchange, engine: Engine) -> dict[str, Any]:
    """All tensors at once, the last layer's first, then wait for all; no computation."""
    order = list(reversed(range(len(exchange.gradients))))
    times = []
    for turn in range(config.warmup + config.rounds):
        if turn == config.warmup:
            say("begin", **usage())
        for i in order:
            exchange.fill(i, turn)
        began = time.monotonic()
        for i in order:
            exchange.pushpull(i)
        for i in order:
            exchange.gradients[i].wait_to_read()
        times.append(time.monotonic() - began)
        for i in order:
            exchange.check(i, turn)
        if turn - config.warmup + 1 in config.reports:
            say("progress", rounds=turn - config.warmup + 1)
    say("end", **usage())
    return {"times_s": times[config.warmup :]}


def idle(config: Config, exchange: Exchange, engine: Engine) -> dict[str, Any]:
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
    exchange = Exchange(workload_of(config.tensors), store)
    if store:
        store._barrier()
    say("started", **usage())
    sampler, blocks = Sampler(config.sample_s), Sampler(config.blocks_s, prophet_blocks)
    result = MODES[config.mode](config, exchange, Engine())
    if series := sampler.stop():
        result["series"] = series
    if seen := blocks.stop():
        result["blocks"] = seen
    if config.mode != "idle":
        exchange.check_zeros()
    say("result", wrong=exchange.wrong, bytes=exchange.workload.bytes, **result)


if __name__ == "__main__":
    main()
