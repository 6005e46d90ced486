"""Models of small and large parameters, trained by two workers: wrapped and with DDP by turns.

What there is to lose on one machine, where links cost nothing, shows: all that is done for each
parameter. Two models that are alike take steps by turns on the same data, so that a machine that
is busy for a while is so for both. In the end their weights must be the same.
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
from torch import distributed, nn

from scripts.lab.systems.rendezvous import place
from scripts.lab.systems.torch_transformer import BATCH, CONTEXT, TOKENS, Transformer
from scripts.lab.systems.torch_worker import PORT, ddp
from scripts.lab.workloads.job_config import Config
from scripts.lab.workloads.measurement import DEVICE, say, usage

TURN_S = 0.4  # about; steps are counted, the same for both
STEPS = (2, 40)  # in a turn, at least and at most
BATCHES = 4
WORDS = 125_000  # 128 MB in rows of 256


class Scales(nn.Module):  # type: ignore[misc]
    """Vectors that multiply one another."""

    def __init__(self, count: int, size: int) -> None:
        super().__init__()
        self.scales = nn.ParameterList(nn.Parameter(torch.ones(size)) for _ in range(count))

    def forward(self, x: Any) -> Any:
        for scale in self.scales:
            x = x * scale
        return x


class Words(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.words, self.last = nn.Embedding(WORDS, 256), nn.Linear(256, 10)

    def forward(self, text: Any) -> Any:
        return self.last(self.words(text).mean(1))


def chain(count: int, size: int) -> Any:
    return nn.Sequential(*(nn.Linear(size, size, bias=False) for _ in range(count)))


def norms() -> Any:
    pairs = ((nn.LayerNorm(8), nn.Linear(8, 8)) for _ in range(500))
    return nn.Sequential(*(layer for pair in pairs for layer in pair))


def perceptron() -> Any:
    wide = ((784, 512), (512, 512))
    layers = [layer for shape in wide for layer in (nn.Linear(*shape), nn.ReLU())]
    return nn.Sequential(*layers, nn.Linear(512, 10))


def rows(size: int) -> Callable[[], Any]:
    return lambda: torch.randn(8, size)


MODELS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "500 matrices of 16 x 16": (lambda: chain(500, 16), rows(16)),
    "2000 vectors of 8": (lambda: Scales(2000, 8), rows(8)),
    "1000 layers of 8, each with a bias": (norms, rows(8)),
    "100 matrices of 64 x 64": (lambda: chain(100, 64), rows(64)),
    "a transformer of 14.7 MB": (Transformer, lambda: torch.randint(TOKENS, (BATCH, CONTEXT))),
    "a perceptron of three layers": (perceptron, rows(784)),
    "an embedding of 128 MB": (Words, lambda: torch.randint(WORDS, (8, 16))),
}


def sgd(model: Any) -> Any:
    return torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)


def turn_s(model: Any, optimizer: Any, batches: list[Any], steps: int) -> float:
    """Seconds for each of these steps."""
    distributed.barrier()
    began = time.perf_counter()
    for number in range(steps):
        model(batches[number % len(batches)]).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    if hasattr(optimizer, "synchronize"):
        optimizer.synchronize()
    return (time.perf_counter() - began) / steps


def steps_in_a_turn(took_s: float) -> int:
    """As worker 0 finds."""
    fitting = torch.tensor([max(STEPS[0], min(STEPS[1], round(TURN_S / took_s)))])
    distributed.broadcast(fitting, 0)
    return int(fitting)


def main() -> None:
    config = Config(**json.loads(sys.argv[1]))
    rank, workers, first = place()
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = os.environ[DEVICE]
    distributed.init_process_group(
        "gloo", init_method=f"tcp://{first}:{PORT}", rank=rank, world_size=workers
    )
    make, data = MODELS[os.environ["LAB_MODEL"]]
    torch.manual_seed(0)
    model = make()
    other = copy.deepcopy(model)
    both = [mercury.wrap(model, sgd(model)), ddp(other, sgd(other))]
    torch.manual_seed(rank)
    batches = [data() for _ in range(BATCHES)]
    say("started", **usage())
    for trained in both:
        turn_s(*trained, batches, BATCHES)
    steps = steps_in_a_turn(turn_s(*both[1], batches, 1))
    turn_s(*both[0], batches, 1)
    say("begin", **usage())
    took: list[list[float]] = [[], []]
    for turn in range(config.rounds):
        for which in (0, 1) if turn % 2 else (1, 0):
            took[which].append(turn_s(*both[which], batches, steps))
    say("end", **usage())
    vectors = [nn.utils.parameters_to_vector(m.parameters()) for m in (model, other)]
    wrong = [] if torch.allclose(*vectors) else ["the wrapped model's weights are not DDP's"]
    say("result", times_s=took[0], ddp_s=took[1], steps=steps, wrong=wrong)
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
