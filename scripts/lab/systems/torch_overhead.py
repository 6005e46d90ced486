"""What `wrap` costs where it gains nothing: a job of one worker, which also trains without it.

Two models that are alike, one of them wrapped, take steps by turns on the same data, so that a
machine that is busy for a while is so for both. In the end their weights must be the same.
Servers and the scheduler run this as far as the first import.
"""

import pslite_ext.torch as mercury

# isort: split
import copy
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

from scripts.lab.systems.torch_transformer import BATCH, CONTEXT, TOKENS, Transformer
from scripts.lab.workloads.job_config import Config
from scripts.lab.workloads.measurement import say, usage

CLASSES = 10
_loss = torch.nn.functional.cross_entropy


class Cnn(torch.nn.Module):
    """Of 20 small layers: what is done for each parameter shows."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[torch.nn.Module] = [torch.nn.Conv2d(3, 32, 3, padding=1)]
        for _ in range(9):
            layers += [torch.nn.BatchNorm2d(32), torch.nn.ReLU()]
            layers.append(torch.nn.Conv2d(32, 32, 3, padding=1))
        self.layers = torch.nn.Sequential(*layers)
        self.last = torch.nn.Linear(32, CLASSES)

    def forward(self, x: Any) -> Any:
        return self.last(self.layers(x).mean((2, 3)))


def of_text(model: Any) -> Any:
    text = torch.randint(TOKENS, (BATCH, CONTEXT + 1))
    return lambda: _loss(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())


def of_pictures(model: Any) -> Any:
    pictures, labels = torch.randn(16, 3, 16, 16), torch.randint(CLASSES, (16,))
    return lambda: _loss(model(pictures), labels)


MODELS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "transformer": (Transformer, of_text),
    "cnn": (Cnn, of_pictures),
}


def adam(model: Any) -> Any:
    return torch.optim.Adam(model.parameters(), lr=1e-3)


def step_s(loss: Callable[[], Any], optimizer: Any) -> float:
    began = time.perf_counter()
    loss().backward()
    optimizer.step()
    optimizer.zero_grad()
    return time.perf_counter() - began


def main() -> None:
    config = Config(**json.loads(sys.argv[1]))
    torch.set_num_threads(1)
    make, data = MODELS[os.environ["LAB_MODEL"]]
    plain = make()
    model = copy.deepcopy(plain)
    both = [(plain, adam(plain)), mercury.wrap(model, adam(model))]
    say("started", **usage())
    took: list[list[float]] = [[], []]
    for turn in range(config.warmup + config.rounds):
        if turn == config.warmup:
            say("begin", **usage())
        for which in (0, 1) if turn % 2 else (1, 0):
            torch.manual_seed(turn)
            trained, optimizer = both[which]
            took[which].append(step_s(data(trained), optimizer))
    say("end", **usage())
    vectors = [torch.nn.utils.parameters_to_vector(m.parameters()) for m in (plain, model)]
    wrong = [] if torch.equal(*vectors) else ["the wrapped model's weights are not plain torch's"]
    plain_s, wrapped_s = (times[config.warmup :] for times in took)
    say("result", times_s=wrapped_s, plain_s=plain_s, wrong=wrong)


if __name__ == "__main__":
    main()
