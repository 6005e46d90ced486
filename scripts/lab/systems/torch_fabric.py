"""A process of a job under MLfabric that trains a task of torch_accuracy.py, and says what came of
it.

Its arguments: the task, the mode, how many rounds, the seed, how large steps are, as a part of the
task's own rate, and how many steps are one update. In a round, each worker has its part of one
batch.
"""

import pslite_ext.torch as mercury

# isort: split
import hashlib
import json
import sys
from collections.abc import Callable

import torch
from torch.nn.functional import cross_entropy

from scripts.lab.systems.torch_accuracy import Task, batches, lenet, transformer

TASKS: dict[str, Callable[[], Task]] = {
    "lenet5": lenet,
    "transformer": lambda: transformer(width=128, layers=2, batch=32),
}


def train(task: Task, mode: str, rounds: int, every: int) -> dict[str, object]:
    model, optimizer = mercury.fabric(task.model, task.optimizer, mode, every)
    for x, wanted in batches(task, mercury.rank(), mercury.workers(), rounds):
        cross_entropy(model(x).flatten(0, -2), wanted.flatten()).backward()
        optimizer.step()
        optimizer.zero_grad()
    optimizer.synchronize()  # all have the model with the updates of all
    loss, right = task.measure()
    weights = torch.nn.utils.parameters_to_vector(model.parameters()).detach()
    digest = hashlib.sha256(weights.numpy().tobytes()).hexdigest()
    return {"loss": loss, "right": right, "digest": digest, "fates": mercury.stats()["fabric"]}


def main() -> None:
    name, mode, rounds, seed, part, every = sys.argv[1:]
    torch.set_num_threads(1)
    torch.manual_seed(int(seed))
    task = TASKS[name]()
    for group in task.optimizer.param_groups:
        group["lr"] *= float(part)
    print(json.dumps(train(task, mode, int(rounds), int(every))), flush=True)


if __name__ == "__main__":
    main()
