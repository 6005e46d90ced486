"""Trains with workers that come while others train: what each is told by its environment.

WAITS: for a file, before it asks to be let in. DIES_AT: the worker of that job that is RANK 1 kills
itself at that step. RAISES_AT: all but worker 0 raise at that step. WAITS_FOR: once so many workers
are there, all train 20 steps more. KILLS: as a newcomer, it kills worker 0, or itself if that says
so, while it takes what it is given. HANGS: as a newcomer, it does not go on with that until a file
is there. PATIENCE_S: how long others wait for it. LOCAL: they train in local steps.
"""

import contextlib
import hashlib
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import torch

from pslite_ext import torch as mercury
from pslite_ext.saving import letting_in
from tests.integration.ending_together import last_step

letting_in.LOADS_WITHIN_S = float(os.environ.get("PATIENCE_S", "60"))
LOCAL = bool(os.environ.get("LOCAL"))
folder, hidden = Path(sys.argv[1]), int(os.environ.get("HIDDEN", "100"))
torch.manual_seed(1)
torch.set_num_threads(1)


class Restored:
    """Part of a checkpoint that hears when it is restored."""

    def state_dict(self) -> dict[str, Any]:
        steps = saved.steps if "saved" in globals() else 0
        return {"steps": steps, "sparse": [torch.eye(3).to_sparse(), torch.eye(3).to_sparse_csr()]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        assert all(torch.equal(its.to_dense(), torch.eye(3)) for its in state["sparse"])
        print(f"restored after {state['steps']} steps", flush=True)
        if killed := os.environ.get("KILLS"):
            one = os.getpid() if killed == "itself" else int((folder / "pid").read_text())
            os.kill(one, signal.SIGKILL)
        while os.environ.get("HANGS") and not (folder / "go on").exists():
            time.sleep(0.1)


model = torch.nn.Sequential(
    torch.nn.Linear(32, hidden), torch.nn.BatchNorm1d(hidden), torch.nn.ReLU(),
    torch.nn.Linear(hidden, 8),
)  # fmt: skip
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 20, 0.95)
if LOCAL:
    mercury.local_steps(model, optimizer, every=6, fragments=2, delay=1)
else:
    model, optimizer = mercury.wrap(model, optimizer, wire=os.environ.get("WIRE"))
while os.environ.get("WAITS") and not (folder / "may ask").exists():
    time.sleep(0.05)
saved = mercury.checkpoint(
    folder / f"saved {os.getpid()}",
    every=50,
    model=model,
    optimizer=optimizer,
    schedule=schedule,
    restored=Restored(),
)
began, rank = saved.steps, mercury.rank()
torch.manual_seed(100 + rank)
if rank == 0:
    (folder / "pid").write_text(str(os.getpid()))
last = None
while last is None or saved.steps < last:
    optimizer.zero_grad()
    x, y = torch.randn(16, 32), torch.randint(8, (16,))
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
    schedule.step()
    time.sleep(0.01)
    if os.environ.get("DIES_AT") == str(saved.steps) and rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if os.environ.get("RAISES_AT") == str(saved.steps) and rank > 0:
        raise ValueError("a mistake in the script")
    saved.step()
    if last is None:
        last = last_step(folder, saved.steps)
with mercury.shared_weights(model) if LOCAL else contextlib.nullcontext():
    values = [p.detach().numpy().tobytes() for p in model.parameters()]
if not LOCAL:
    values += [optimizer.state[p]["exp_avg"].numpy().tobytes() for p in model.parameters()]
digest = hashlib.sha1(b"".join(values)).hexdigest()[:12]
rate = optimizer.param_groups[0]["lr"]
print(f"worker {rank} began after {began}; {digest} at {saved.steps}, rate {rate:.9g}", flush=True)
