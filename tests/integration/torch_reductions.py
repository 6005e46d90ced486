"""A worker that sums tensors of random sizes and types, so many, some at once, and looks for leaks.

Its argument: how many. All workers draw the same ones.
"""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

import torch
import torch.distributed as dist

import pslite_ext.torch  # noqa: F401 (it brings the backend)

TYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32)
ELEMENTS_MAX = 1 << 15
AT_ONCE_MAX = 40
GROWTH_MB_MAX = 16.0


def resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def threads() -> int:
    return len(os.listdir("/proc/self/task"))


def some(count: int, rank: int, workers: int) -> None:
    """Started together, and waited for in any order."""
    begun = []
    for _ in range(count):
        size = int(ELEMENTS_MAX ** random.random())
        value = random.randrange(1, 20)
        tensor = torch.full((size,), value + rank, dtype=random.choice(TYPES))
        due = sum(value + r for r in range(workers))
        begun.append((dist.all_reduce(tensor, async_op=True), tensor, due))
    random.shuffle(begun)
    for work, tensor, due in begun:
        work.wait()
        assert (tensor == due).all(), (tensor.dtype, tensor.numel(), due)


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("mercury")
    rank, workers = dist.get_rank(), dist.get_world_size()
    wanted, done, before = int(sys.argv[1]), 0, (0.0, 0)
    random.seed(2)
    while done < wanted:
        count = min(random.randrange(1, AT_ONCE_MAX), wanted - done)
        some(count, rank, workers)
        done += count
        if not before[1] and done > wanted / 2:  # by now all sizes have been seen
            before = resident_mb(), threads()
    growth = resident_mb() - before[0]
    assert threads() <= before[1], (before, threads())
    assert growth < GROWTH_MB_MAX, f"{growth:.1f} MB more"
    dist.destroy_process_group()
    print(f"summed {done}, {before[0]:.0f} MB when half were, {growth:.1f} MB more now", flush=True)


if __name__ == "__main__":
    main()
