"""Runs an example over Gloo, then over mercury in each of its ways, in one process.

Arguments: the script, as many free ports as there are ways over mercury (a job keeps the store by
which its ranks have met, and so the store's port), and options of the script after each `with`.
"""

from __future__ import annotations

import os
import runpy
import sys

import torch.distributed as dist


def forget_the_group() -> None:
    """accelerate keeps what it has found out for as long as the process lives."""
    if dist.is_initialized():
        dist.destroy_process_group()
    if "accelerate" in sys.modules:
        sys.modules["accelerate"].state.AcceleratorState._reset_state(True)


def main() -> None:
    script, ports, *words = sys.argv[1:]
    ways = [way.split() for way in " ".join(words).split("with")]
    ways.insert(0, [*ways[0], "--backend", "gloo"])
    for way, port in zip(ways, [os.environ["MASTER_PORT"], *ports.split(",")]):
        os.environ["MASTER_PORT"] = port
        sys.argv = [script, *way]
        runpy.run_path(script, run_name="__main__")
        print("over", *way, flush=True)
        forget_the_group()


if __name__ == "__main__":
    main()
