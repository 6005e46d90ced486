"""A training loop of accelerate over mercury: which of two moons is a point on?

torchrun --nproc-per-node 2 examples/torch_accelerate.py
"""

# First: a server or scheduler that runs this script gets no further, and needs no PyTorch.
import pslite_ext.torch as mercury

# isort: split
import argparse
import hashlib

import torch
import torch.distributed as dist
from accelerate import Accelerator
from torch import nn

POINTS = 1024


def moons() -> torch.utils.data.TensorDataset:
    """Two half circles, one in the other."""
    torch.manual_seed(0)
    side = torch.arange(POINTS) % 2
    angle = torch.rand(POINTS) * torch.pi + side * torch.pi
    points = torch.stack((angle.cos() + side, angle.sin() + 0.5 * side), dim=1)
    return torch.utils.data.TensorDataset(points + 0.1 * torch.randn(POINTS, 2), side)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=32, help="of each worker")
    parser.add_argument("--backend", default="mercury", help="gloo, to compare")
    parser.add_argument("--wrap", action="store_true", help="mercury.wrap: faster than DDP")
    options = parser.parse_args()

    dist.init_process_group(options.backend)  # accelerate takes the process group that is there
    accelerator = Accelerator(cpu=True)
    torch.manual_seed(1)
    model = nn.Sequential(
        nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2)
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    loader = torch.utils.data.DataLoader(moons(), options.batch_size, drop_last=True)
    loader = accelerator.prepare(loader)
    if options.wrap:  # accelerate would put DDP around the model
        model, optimizer = mercury.wrap(model, optimizer)
    else:
        model, optimizer = accelerator.prepare(model, optimizer)
    for epoch in range(options.epochs):
        for points, side in loader:
            loss = nn.functional.cross_entropy(model(points), side)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        mean = accelerator.reduce(loss.detach(), reduction="mean")
        accelerator.print(f"epoch {epoch + 1}: loss {mean:.4f}")
    weights = nn.utils.parameters_to_vector(model.parameters()).detach().numpy()
    print("weights", hashlib.sha256(weights.tobytes()).hexdigest()[:16], flush=True)


if __name__ == "__main__":
    main()
