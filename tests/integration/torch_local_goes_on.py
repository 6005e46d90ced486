"""Local steps of which one worker is lost, or has fewer, or a server is lost: `MANNER DELAY`.

All elements of the weights are one number, and so are gradients: a worker's rank plus 1. So what
the weights must be is known; the outer optimizer takes the average as it is.
"""

import contextlib
import os
import signal
import sys
from pathlib import Path

import torch

import pslite_ext.torch as mercury


def server() -> int:
    """One of this job, as its launcher knows it."""
    wanted = {b"DMLC_ROLE=server", f"DMLC_PS_ROOT_PORT={os.environ['DMLC_PS_ROOT_PORT']}".encode()}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            if wanted <= {*(folder / "environ").read_bytes().split(b"\0")}:
                return int(folder.name)
    raise AssertionError("there is no server")


manner, delay = sys.argv[1], int(sys.argv[2])
EVERY, LOST, LOST_AFTER = 4, 1, 6
STEPS = 5 * EVERY
rank = int(os.environ["RANK"])
torch.set_num_threads(1)
model = torch.nn.Linear(300, 500, bias=False)
torch.nn.init.zeros_(model.weight)
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
mercury.local_steps(
    *(model, optimizer, lambda copies: torch.optim.SGD(copies, lr=1.0)),
    every=EVERY,
    delay=delay,
    wire=os.environ["WIRE"],
)
assert mercury.workers() == 3
gradient = torch.full_like(model.weight, rank + 1.0)
expected, own = 0.0, 0.0
for step in range(1, STEPS + 1):
    model.weight.grad = gradient.clone()
    optimizer.step()
    own -= rank + 1.0
    if step % EVERY == 0:
        # By how much each worker's were further, as its delta was sent: the steps since the last
        # result, which the others had, too.
        those = (1, 2, 3) if step <= LOST_AFTER or manner == "server" else (1, 3)
        expected -= sum(those) / len(those) * (EVERY - delay)
        own = expected
    torch.testing.assert_close(
        model.weight.detach(), torch.full_like(gradient, own), rtol=1e-2, atol=1e-2
    )
    if rank == LOST and step == LOST_AFTER:
        if manner == "server":
            os.kill(server(), signal.SIGKILL)
            continue
        if manner == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        break
with mercury.shared_weights(model):
    last = model.weight.detach().unique().tolist()
if rank != LOST or manner == "server":
    print(f"ended with {last}, {mercury.workers()} workers", flush=True)
