"""Imports PyTorch once, which takes seconds, and forks workers that have it."""

from __future__ import annotations

import torch
import torch.distributed
from torch.nn.parallel import DistributedDataParallel  # noqa: F401

from tests.forking import fork_for_who_asks

if __name__ == "__main__":
    torch.optim.SGD([torch.zeros(1)])  # the first optimizer imports as much again
    fork_for_who_asks()
