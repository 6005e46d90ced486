"""A worker that torchrun or `mercury launch` has started: it sums a little, and says the result."""

from __future__ import annotations

import os

# First: a server or scheduler that runs this script gets no further, and needs no torch.
import pslite_ext.torch  # noqa: F401 (it brings the backend)

# isort: split
import torch
import torch.distributed as dist

from pslite_ext import _core


def main() -> None:
    rank = int(os.environ["RANK"])
    torch.manual_seed(rank)
    dist.init_process_group("mercury")
    assert _core.rank() == rank
    tensor = torch.randn(3000)
    dist.all_reduce(tensor)
    # In one piece: the workers write to the same pipe.
    said = f"summed {rank} of {os.environ['WORLD_SIZE']}: {tensor.double().sum():.17g}\n"
    os.write(1, said.encode())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
