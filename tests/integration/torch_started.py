"""A worker that torchrun or `mercury launch` has started: trains a little and says what came of it.

`die RANK`: that worker kills itself in the middle.
"""

from __future__ import annotations

import os
import signal
import sys

# First: a server or scheduler that runs this script gets no further, and needs no torch.
import pslite_ext.torch as mercury

# isort: split
import torch

from pslite_ext import _core

STEPS = 5


def main() -> None:
    victim = int(sys.argv[2]) if sys.argv[1:2] == ["die"] else -1
    rank = int(os.environ["RANK"])
    torch.manual_seed(rank)
    model = torch.nn.Linear(3, 2)
    model, optimizer = mercury.wrap(model, torch.optim.SGD(model.parameters(), lr=0.1))
    assert _core.rank() == rank
    for step in range(STEPS):
        if rank == victim and step == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        model(torch.randn(4, 3)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    optimizer.synchronize()
    total = sum(float(p.detach().double().sum()) for p in model.parameters())
    print(f"trained {rank} of {os.environ['WORLD_SIZE']}: {total:.17g}", flush=True)


if __name__ == "__main__":
    main()
