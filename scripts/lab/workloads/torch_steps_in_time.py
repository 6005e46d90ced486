"""A worker under PyTorch that hardly computes: what each step took, and a digest of all that its
weights were, as JSON.

Usage: torch_steps_in_time.py STEPS ELEMENTS TENSORS. It says `begun` after a few steps.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time

import torch
from torch import nn

import pslite_ext.torch as mercury

BEGUN_AFTER = 5  # steps


def main(steps: int, elements: int, tensors: int) -> None:
    model = nn.ParameterList([nn.Parameter(torch.zeros(elements)) for _ in range(tensors)])
    model, optimizer = mercury.wrap(model, torch.optim.SGD(model.parameters(), lr=0.1))
    seen = hashlib.sha1()
    ends = [time.monotonic()]
    for step in range(steps):
        optimizer.zero_grad()
        sum(
            parameter.sum() * (1 + (step + key + mercury.rank()) % 5)
            for key, parameter in enumerate(model)
        ).backward()
        optimizer.step()
        optimizer.synchronize()
        ends.append(time.monotonic())
        for parameter in model:
            seen.update(parameter.detach()[: 1 << 16].numpy().tobytes())
        if step + 1 == BEGUN_AFTER:
            print("begun", flush=True)
    print(json.dumps({"ends": ends, "digest": seen.hexdigest()}), flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(*map(int, sys.argv[1:]))
