"""Runs an example over Gloo, then over mercury in each of its ways, in one process.

Arguments: the script, a second free port, and options of the script after each `with`.
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
    script, port, *words = sys.argv[1:]
    ways = [way.split() for way in " ".join(words).split("with")]
    for way in ([*ways[0], "--backend", "gloo"], *ways):
        sys.argv = [script, *way]
        runpy.run_path(script, run_name="__main__")
        print("over", *way, flush=True)
        forget_the_group()
        os.environ["MASTER_PORT"] = port


if __name__ == "__main__":
    main()
