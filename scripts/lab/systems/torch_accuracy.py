"""How far training comes with the gradients that LAB_WIRE asks for, or DDP's LAB_HOOK: one task,
LAB_SEEDS times.

LAB_TASK is LeNet-5 or ResNet-18 on scikit-learn's digits, or a transformer of more than 10 million
parameters on this project's own docs, character by character. Its argument is a `Config`, of which
the rounds count. Workers share each batch. What is said is measured LAB_LOOKS times, on data that
none has seen; the clock that is told with it stands still meanwhile. LAB_UNTIL is a loss that is
good enough, and LAB_TESTED how much of that data is looked at. LAB_LOCAL: arguments of local steps,
as JSON; then the weights that all workers have alike are looked at.
"""

import pslite_ext.torch as mercury

# isort: split
import functools
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import distributed, nn
from torch.nn.functional import cross_entropy

from examples import digits
from scripts.lab.systems import torch_worker
from scripts.lab.systems.rendezvous import place
from scripts.lab.workloads.job_config import Config
from scripts.lab.workloads.measurement import say, usage

DOCS = Path(__file__).resolve().parents[3] / "docs"
WIDTH, LAYERS, HEAD_WIDTH, CONTEXT, CHARACTERS = 384, 6, 64, 64, 128


@dataclass
class Task:
    """`train` and `test`: inputs and what is wanted of them."""

    model: Any
    optimizer: Any
    train: tuple[Any, Any]
    test: tuple[Any, Any]
    batch: int  # of all workers

    def measure(self) -> tuple[float, float]:
        """The loss, and which part of the guesses is right."""
        self.model.eval()
        inputs, wanted = self.test
        with torch.no_grad():
            guesses = torch.cat([self.model(part) for part in inputs.split(100)]).flatten(0, -2)
        self.model.train()
        right = (guesses.argmax(-1) == wanted.flatten()).float().mean()
        return float(cross_entropy(guesses, wanted.flatten())), float(right)


class Unit(nn.Module):  # type: ignore[misc]
    def __init__(self, inputs: int, out: int, stride: int) -> None:
        super().__init__()
        self.way = nn.Sequential(
            *(nn.Conv2d(inputs, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out), nn.ReLU()),
            *(nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out)),
        )
        straight = stride == 1 and inputs == out
        self.beside = nn.Identity() if straight else nn.Conv2d(inputs, out, 1, stride, bias=False)

    def forward(self, x: Any) -> Any:
        return torch.relu(self.way(x) + self.beside(x))


class Transformer(nn.Module):  # type: ignore[misc]
    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.characters = nn.Embedding(CHARACTERS, width)
        self.places = nn.Embedding(CONTEXT, width)
        layer = nn.TransformerEncoderLayer(
            width, width // HEAD_WIDTH, 4 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.next = nn.Linear(width, CHARACTERS)

    def forward(self, text: Any) -> Any:
        x = self.characters(text) + self.places(torch.arange(text.shape[1]))
        mask = nn.Transformer.generate_square_subsequent_mask(text.shape[1])
        return self.next(self.layers(x, mask=mask, is_causal=True))


def _digits(model: Any, rate: float, batch: int, every: int) -> Task:
    images, labels, test_images, test_labels = (torch.from_numpy(a) for a in digits.load())
    train, test = images[:, :, ::every, ::every], test_images[:, :, ::every, ::every]
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    return Task(model, optimizer, (train, labels.long()), (test, test_labels.long()), batch)


def lenet() -> Task:
    model = nn.Sequential(
        *(nn.Conv2d(1, 20, 5), nn.Tanh(), nn.MaxPool2d(2)),
        *(nn.Conv2d(20, 50, 5), nn.Tanh(), nn.MaxPool2d(2), nn.Flatten()),
        *(nn.Linear(800, 500), nn.Tanh(), nn.Linear(500, 10)),
    )
    return _digits(model, 0.02, 64, 1)


def resnet18() -> Task:
    widths = (64, 128, 256, 512)
    stem = (nn.Conv2d(1, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU())
    units = [
        unit
        for before, width in zip((64, *widths), widths)
        for unit in (Unit(before, width, 1 if width == 64 else 2), Unit(width, width, 1))
    ]
    head = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))
    return _digits(nn.Sequential(*stem, *units, *head), 0.02, 64, 2)


def transformer(width: int = WIDTH, layers: int = LAYERS, batch: int = 8) -> Task:
    text = "".join(path.read_text() for path in sorted(DOCS.glob("*.md")))
    numbers = torch.from_numpy(np.frombuffer(text.encode("ascii", "replace"), np.uint8).copy())
    pieces = numbers[: len(numbers) // (CONTEXT + 1) * (CONTEXT + 1)].view(-1, CONTEXT + 1).long()
    apart = len(pieces) // 10
    test, train = pieces[::10][:apart], pieces[torch.arange(len(pieces)) % 10 != 0]
    model = Transformer(width, layers)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
    first, second = ((part[:, :-1], part[:, 1:]) for part in (train, test))
    return Task(model, optimizer, first, second, batch)


TASKS: dict[str, Callable[[], Task]] = {
    "lenet5": lenet,
    "resnet18": resnet18,
    "transformer": transformer,
}


def batches(task: Task, rank: int, workers: int, rounds: int) -> Iterator[tuple[Any, Any]]:
    """This worker's part of each."""
    inputs, wanted = task.train
    left: list[int] = []
    for _ in range(rounds):
        if len(left) < task.batch:
            left = torch.randperm(len(inputs)).tolist()
        mine = left[: task.batch][rank::workers]
        left = left[task.batch :]
        yield inputs[mine], wanted[mine]


@functools.cache
def meet() -> None:
    torch_worker.meet(os.environ.get("LAB_BACKEND", "gloo"))


def parallel(task: Task) -> tuple[Any, Any]:
    if "LAB_HOOK" in os.environ:
        meet()
        return torch_worker.ddp(task.model, task.optimizer)
    if local := os.environ.get("LAB_LOCAL"):
        arguments = json.loads(local)
        return mercury.local_steps(
            task.model, task.optimizer, wire=os.environ["LAB_WIRE"], **arguments
        )
    return mercury.wrap(task.model, task.optimizer, wire=os.environ["LAB_WIRE"])


def alike(task: Task) -> AbstractContextManager[None]:
    """In this context, its model has the weights that all workers have."""
    return mercury.shared_weights(task.model) if "LAB_LOCAL" in os.environ else nullcontext()


@dataclass
class Trained:
    losses: list[float]  # at each look
    seconds: list[float]  # of training, until then
    right: float = 0.0  # in the end
    digest: str = ""


def train(seed: int, rank: int, workers: int, rounds: int) -> Trained:
    torch.manual_seed(seed)
    task = TASKS[os.environ["LAB_TASK"]]()
    if tested := os.environ.get("LAB_TESTED"):
        inputs, wanted = task.test
        task.test = inputs[: int(tested)], wanted[: int(tested)]
    model, optimizer = parallel(task)
    looks, enough = int(os.environ["LAB_LOOKS"]), float(os.environ.get("LAB_UNTIL", "0"))
    trained = Trained([], [])
    spent, began = 0.0, time.monotonic()
    for turn, (x, wanted) in enumerate(batches(task, rank, workers, rounds), 1):
        cross_entropy(model(x).flatten(0, -2), wanted.flatten()).backward()
        optimizer.step()
        optimizer.zero_grad()
        if turn * looks % rounds < looks:
            spent += time.monotonic() - began
            with alike(task):
                loss, trained.right = task.measure()
            trained.losses.append(loss)
            trained.seconds.append(spent)
            if loss <= enough:  # as all workers find it: their weights are the same
                break
            began = time.monotonic()
    with alike(task):
        weights = torch.nn.utils.parameters_to_vector(task.model.parameters()).detach()
    trained.digest = hashlib.sha256(weights.numpy().tobytes()).hexdigest()
    return trained


def main() -> None:
    config = Config(**json.loads(sys.argv[1]))
    torch.set_num_threads(1)
    rank, workers, _ = place()
    say("started", **usage())
    say("begin", **usage())
    seeds = range(int(os.environ["LAB_SEEDS"]))
    found = [asdict(train(seed, rank, workers, config.rounds)) for seed in seeds]
    say("end", **usage())
    say("result", trained=found)
    if distributed.is_initialized():
        distributed.destroy_process_group()


if __name__ == "__main__":
    main()
