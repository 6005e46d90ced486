"""A worker under PyTorch that hardly computes: what each step took, and a digest of all that its
weights were.

Usage: torch_steps_in_time.py STEPS ELEMENTS TENSORS.
"""

from __future__ import annotations

import sys

import torch
from torch import nn

import pslite_ext.torch as mercury
from scripts.lab.workloads.timed_steps import SEEN, run


def main(steps: int, elements: int, tensors: int) -> None:
    model = nn.ParameterList([nn.Parameter(torch.zeros(elements)) for _ in range(tensors)])
    model, optimizer = mercury.wrap(model, torch.optim.SGD(model.parameters(), lr=0.1))

    def step(number: int) -> None:
        optimizer.zero_grad()
        sum(
            parameter.sum() * (1 + (number + key + mercury.rank()) % 5)
            for key, parameter in enumerate(model)
        ).backward()
        optimizer.step()
        optimizer.synchronize()

    run(steps, step, lambda: (its.detach()[:SEEN].numpy().tobytes() for its in model))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(*map(int, sys.argv[1:]))
