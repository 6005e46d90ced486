"""A worker that trains a few steps, and says what the figures are.

Its argument: the port of worker 0's page.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.request

import torch
from torch import nn

import pslite_ext.torch as mercury

STEPS = 8
UNTRACED = (3, 4)  # steps

if __name__ == "__main__":
    rank = int(os.environ["DMLC_TASK_ID"])
    os.environ["MERCURY_METRICS_PORT"] = port = "0" if rank else (sys.argv[1:] or ["0"])[0]
    torch.manual_seed(rank)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 300), nn.Linear(300, 4)
    )
    model, optimizer = mercury.wrap(model, torch.optim.SGD(model.parameters(), lr=0.1))
    for step in range(STEPS):
        if "MERCURY_TRACE_DIR" in os.environ and step in UNTRACED:
            mercury.trace(step != UNTRACED[0])
        model(torch.randn(4, 1, 8, 8)).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    optimizer.synchronize()
    print(json.dumps(mercury.stats()), flush=True)
    if port != "0":
        page = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics")
        print(page.read().decode(), flush=True)
