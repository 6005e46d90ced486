"""A small convolutional network on digits, with PyTorch on mercury.

torchrun --nproc-per-node 2 examples/torch_digits.py

With --checkpoints FOLDER, a run that is started again goes on after the last epoch that was saved.

Under MLfabric, where the job survives its server:

mercury launch -n 4 -s 1 --replicas 1 --env MERCURY_FABRIC=1 -- python examples/torch_digits.py \
    --fabric async
"""

# First: a server or scheduler that runs this script gets no further, and needs no PyTorch.
import pslite_ext.torch as mercury

# isort: split
import argparse
import hashlib
import os

import digits
import torch
from torch import nn


def network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 5, padding=2),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 7 * 7, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--checkpoints", metavar="FOLDER", help="one after each epoch")
    parser.add_argument("--fabric", metavar="MODE", help="MLfabric's: async, sync, stale:NUMBER")
    options = parser.parse_args()
    rank, workers = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])

    torch.manual_seed(rank)
    train_x, train_y, test_x, test_y = (torch.from_numpy(part) for part in digits.load())
    per_worker = len(train_x) // workers  # equal numbers of batches
    train_x, train_y = (part[rank::workers][:per_worker] for part in (train_x, train_y.long()))

    model = network()
    # Where workers do not wait, there are as many steps as all of them make.
    rate = 2e-3 if options.fabric in (None, "sync") else 2e-3 / workers
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    if options.fabric:
        model, optimizer = mercury.fabric(model, optimizer, options.fabric)
    else:
        model, optimizer = mercury.wrap(model, optimizer)
    saved, done = None, 0
    if options.checkpoints:
        saved = mercury.checkpoint(options.checkpoints, every=1, model=model, optimizer=optimizer)
        done = saved.steps
    for epoch in range(done, options.epochs):
        model.train()
        order = torch.randperm(per_worker)
        for batch in order.split(options.batch_size):
            loss = nn.functional.cross_entropy(model(train_x[batch]), train_y[batch])
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        model.eval()
        with torch.no_grad():
            accuracy = (model(test_x).argmax(1) == test_y).float().mean()
        print(f"worker {rank}, epoch {epoch + 1}: accuracy {accuracy:.4f}", flush=True)
        if saved is not None:
            saved.step()
    optimizer.synchronize()  # under MLfabric, all workers have the newest model from here on
    weights = nn.utils.parameters_to_vector(model.parameters()).detach().numpy()
    print("weights", hashlib.sha256(weights.tobytes()).hexdigest()[:16], flush=True)


if __name__ == "__main__":
    main()
