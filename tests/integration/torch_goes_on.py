"""Trains with workers that go on without those that they lose: one kills itself."""

import hashlib
import os
import signal

import torch

from pslite_ext import torch as mercury

STEPS, LOST_AT = 60, 30
rank = int(os.environ["RANK"])
torch.manual_seed(rank)
torch.set_num_threads(1)
layers = [torch.nn.Linear(64, 300), torch.nn.ReLU(), torch.nn.Linear(300, 300), torch.nn.ReLU()]
model = torch.nn.Sequential(*layers, torch.nn.Linear(300, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
model, optimizer = mercury.wrap(model, optimizer, wire=os.environ.get("WIRE"))
ones = torch.ones(8, 64)
for step in range(STEPS):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(torch.randn(32, 64)), torch.randint(10, (32,)))
    loss.backward()
    optimizer.step()
    if step == LOST_AT and os.environ.get("KILL_RANK") == str(rank):
        os.kill(os.getpid(), signal.SIGKILL)
# All have the same weights, so the average of the same gradient is that gradient.
optimizer.zero_grad()
model(ones).sum().backward()
averaged = [p.grad.clone() for p in model.parameters()]
copy = torch.nn.Sequential(
    torch.nn.Linear(64, 300), torch.nn.ReLU(), torch.nn.Linear(300, 300), torch.nn.ReLU(),
    torch.nn.Linear(300, 10),
)  # fmt: skip
copy.load_state_dict(model.state_dict())
copy(ones).sum().backward()
for mean, own in zip(averaged, copy.parameters()):
    torch.testing.assert_close(mean, own.grad, rtol=1e-2, atol=1e-4)
values = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
digest = hashlib.sha1(values).hexdigest()[:12]
print(f"ended with {digest}, {mercury.workers()} workers", flush=True)
