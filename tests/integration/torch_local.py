"""Workers in local steps, held against what plain Python or plain torch makes of the same.

`CASE...` are names of functions below.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import itertools
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import torch
from torch import nn

import pslite_ext.torch as mercury
from pslite_ext import _core
from pslite_ext.errors import InvalidArgumentError, PeerLostError
from pslite_ext.torch import staging
from tests.integration.torch_training import LateCopies

STEPS = 15
checks = itertools.count()


class Layer(nn.Module):  # type: ignore[misc]
    """Whose gradient is what the test says."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.full((2, 3), value, dtype=torch.float64))
        self.bias = nn.Parameter(torch.full((3,), value, dtype=torch.float64))


def gradient(rank: int, step: int) -> float:
    return 2.0 + rank + (step % 4) / 8


def plain_outer(copies: list[Any]) -> Any:
    return torch.optim.SGD(copies, lr=2.0)


def expected(
    workers: int, fragments: int, every: int, delay: int, alpha: float, nesterov: bool
) -> Iterator[list[list[float]]]:
    """After each step, by worker and fragment, what all elements of its parameters are: without
    tensors, schedules or optimizers, as DiLoCo's papers say it."""
    weights = [[float(f + 1) for f in range(fragments)] for _ in range(workers)]
    common = [float(f + 1) for f in range(fragments)]
    momentum = [0.0] * fragments
    deltas: dict[int, float] = {}
    for step in range(1, STEPS + 1):
        for rank, own in enumerate(weights):
            for f in range(fragments):
                own[f] -= gradient(rank, step)
        for f in range(fragments):
            # Of fragment f, results come after every / fragments * (f + 1) steps, and so on.
            first = every * (f + 1) // fragments
            if step + delay >= first and (step + delay - first) % every == 0:
                deltas[f] = sum(common[f] - own[f] for own in weights) / workers
            if step >= first and (step - first) % every == 0:
                delta = deltas.pop(f)
                if nesterov:
                    momentum[f] = 0.9 * momentum[f] + delta
                    common[f] -= 0.7 * (delta + 0.9 * momentum[f])
                else:
                    common[f] -= 2.0 * delta
                for own in weights:
                    own[f] = (1 - alpha) * common[f] + alpha * own[f]
        yield copy.deepcopy(weights)


def known_updates() -> None:
    """The scenarios of torchft's regression test, and more."""
    rank, workers = -1, 0
    for fragments, delay, alpha, nesterov, listed in [
        *itertools.product((1, 2, 3), (0, 1), (0.0, 0.5, 1.0), (False,), (False,)),
        (2, 0, 0.0, True, True),
        (3, 1, 0.25, True, True),
    ]:
        layers = nn.ModuleList(Layer(f + 1) for f in range(fragments))
        outer = None if nesterov else plain_outer
        model, optimizer = mercury.local_steps(
            *(layers, torch.optim.SGD(layers.parameters(), lr=1.0), outer),
            every=6,
            fragments=list(layers) if listed else fragments,
            delay=delay,
            alpha=alpha,
        )
        rank, workers = mercury.rank(), mercury.workers()
        history = expected(workers, fragments, 6, delay, alpha, nesterov)
        for step, weights in enumerate(history, 1):
            for p in model.parameters():
                p.grad = torch.full_like(p, gradient(rank, step))
            optimizer.step()
            for layer, value in zip(model, weights[rank]):
                for p in layer.parameters():
                    wanted = torch.full_like(p, value)
                    torch.testing.assert_close(p.detach(), wanted, rtol=1e-12, atol=1e-12)


def network() -> Any:
    torch.manual_seed(7)
    layers = [nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 300), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(300, 4)).to(memory_format=torch.channels_last)


def loss_of(model: Any, rank: int, step: int) -> Any:
    inputs = torch.Generator().manual_seed(1000 * rank + step)
    x = torch.randn(6, 1, 8, 8, generator=inputs)
    return nn.functional.cross_entropy(model(x), torch.randint(4, (6,), generator=inputs))


def step_of(model: Any, optimizer: Any, rank: int, step: int) -> None:
    optimizer.zero_grad()
    loss_of(model, rank, step).backward()
    optimizer.step()


def real_training() -> None:
    """AdamW inside, Nesterov outside: as one process that trains all workers' models by turns."""
    model = network()
    model, optimizer = mercury.local_steps(
        model, torch.optim.AdamW(model.parameters(), lr=1e-2), every=4
    )
    rank, workers = mercury.rank(), mercury.workers()
    twins = [network() for _ in range(workers)]
    inner = [torch.optim.AdamW(twin.parameters(), lr=1e-2) for twin in twins]
    common = [p.detach().clone() for p in twins[0].parameters()]
    outer = torch.optim.SGD(common, lr=0.7, momentum=0.9, nesterov=True)
    for step in range(1, 13):
        step_of(model, optimizer, rank, step)
        for number, (twin, its) in enumerate(zip(twins, inner)):
            step_of(twin, its, number, step)
        if step % 4 == 0:
            for shared, *own in zip(common, *(twin.parameters() for twin in twins)):
                shared.grad = torch.stack([shared - p.detach() for p in own]).mean(0)
            outer.step()
            for twin in twins:
                for p, shared in zip(twin.parameters(), common):
                    p.data.copy_(shared)
        for p, its in zip(model.parameters(), twins[rank].parameters()):
            torch.testing.assert_close(p, its, rtol=1e-4, atol=1e-5)


def each_step_is_synchronous() -> None:
    """every=1 and an outer SGD of rate 1 is the average of all workers' SGD: that of one batch."""
    model, twin = network(), network()
    model, optimizer = mercury.local_steps(
        *(model, torch.optim.SGD(model.parameters(), lr=0.1)),
        lambda copies: torch.optim.SGD(copies, lr=1.0),
        every=1,
    )
    joint = torch.optim.SGD(twin.parameters(), lr=0.1)
    for step in range(1, 9):
        step_of(model, optimizer, mercury.rank(), step)
        joint.zero_grad()
        for rank in range(mercury.workers()):
            (loss_of(twin, rank, step) / mercury.workers()).backward()
        joint.step()
        for p, its in zip(model.parameters(), twin.parameters()):
            torch.testing.assert_close(p, its, rtol=1e-4, atol=1e-6)


def values(model: Any) -> bytes:
    return b"".join(
        p.detach().contiguous().view(torch.uint8).numpy().tobytes() for p in model.parameters()
    )


def check_equal(model: Any, what: str) -> None:
    """On all workers."""
    digest = hashlib.sha1(values(model)).hexdigest()
    _core.claim_model(int(hashlib.sha1(what.encode()).hexdigest()[:15], 16), [(digest, what)])


def shared_alike() -> None:
    """Whatever travels, all workers have the same copies after each step; and with all of the model
    at once, nothing sent before and nothing kept, the same weights."""
    for wire, fragments, delay in itertools.product(
        ("float32", "bf16", "fp16", "int8"), (1, 2), (0, 1)
    ):
        model = network()
        model, optimizer = mercury.local_steps(
            *(model, torch.optim.Adam(model.parameters(), lr=1e-2)),
            every=4,
            fragments=fragments,
            delay=delay,
            wire=wire,
        )
        for step in range(1, 9):
            step_of(model, optimizer, mercury.rank(), step)
            before = values(model)
            with mercury.shared_weights(model):
                check_equal(model, f"shared {next(checks)}")
            assert values(model) == before
            if (fragments, delay) == (1, 0) and step % 4 == 0:
                check_equal(model, f"all {next(checks)}")


def where_new_tensors_go_elsewhere() -> None:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with torch.device("meta"):
        mercury.local_steps(model, optimizer, plain_outer, every=2)
    for step in range(4):
        loss_of(model, mercury.rank(), step).backward()
        with torch.device("meta"):
            optimizer.step()
    check_equal(model, "made on the CPU")


def odd_parameters() -> None:
    """Types and layouts, a frozen one, one in two places, and one that the optimizer has not."""
    model = nn.Module()
    model.transposed = nn.Parameter(torch.ones(5, 3).t())
    model.narrow = nn.Parameter(torch.ones(7, dtype=torch.bfloat16))
    model.pairs = nn.Parameter(torch.ones(4, dtype=torch.complex64))
    model.nothing = nn.Parameter(torch.ones(0))
    model.frozen = nn.Parameter(torch.ones(6), requires_grad=False)
    model.tied = model.narrow
    model.alone = nn.Parameter(torch.full((2,), float(int(os.environ["DMLC_TASK_ID"]))))
    model.register_buffer("count", torch.full((2,), float(int(os.environ["DMLC_TASK_ID"]))))
    ours = [p for p in model.parameters() if p is not model.alone]
    model, optimizer = mercury.local_steps(
        model, torch.optim.SGD(ours, lr=1.0), plain_outer, every=2, fragments=2
    )
    rank, workers = mercury.rank(), mercury.workers()
    assert float(model.count[0]) == 0.0  # worker 0's, and from now on this worker's own
    assert float(model.alone[0]) == 0.0
    model.count += rank
    for _ in range(2):
        for p in ours:
            p.grad = torch.full_like(p, 2.0 + rank) if p.requires_grad else None
        optimizer.step()
    # Each fragment is synchronized once, the first before the second step.
    mean = sum(2.0 + r for r in range(workers)) / workers
    first, second = 1 - 2 * mean - (2.0 + rank), 1 - 2 * 2 * mean
    # By bytes: the transposed one is more than half of all.
    assert torch.allclose(model.transposed, torch.full((3, 5), first))
    assert torch.allclose(model.pairs, torch.full((4,), second, dtype=torch.complex64))
    assert torch.allclose(model.narrow.float(), torch.full((7,), second), rtol=1e-2)
    assert bool((model.frozen == 1).all())
    assert float(model.count[0]) == rank


def never_together() -> None:
    """Too few steps, and more that no hook counts."""
    model = nn.Linear(2, 1)
    _, optimizer = mercury.local_steps(
        model, torch.optim.SGD(model.parameters(), lr=1.0), plain_outer, every=4, fragments=2
    )
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    optimizer.step()
    torch.optim.SGD(model.parameters(), lr=1.0).step()


def any_inner_optimizer() -> None:
    """Such as are refused where gradients are summed."""
    rows = nn.Embedding(20, 4, sparse=True)
    _, optimizer = mercury.local_steps(
        *(rows, torch.optim.SparseAdam(rows.parameters(), lr=0.1), plain_outer), every=2
    )
    before = rows.weight.detach().clone()
    for _ in range(2):
        optimizer.zero_grad()
        rows(torch.tensor([mercury.rank()])).sum().backward()
        optimizer.step()
    check_equal(rows, "embedding")
    touched = (rows.weight != before).any(1).nonzero().flatten().tolist()
    assert touched == list(range(mercury.workers()))
    model = network()
    _, search = mercury.local_steps(
        *(model, torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=3), plain_outer), every=2
    )

    def closure() -> Any:
        search.zero_grad()
        loss = loss_of(model, mercury.rank(), 1)
        loss.backward()
        return loss

    for _ in range(2):
        search.step(closure)
    check_equal(model, "searched")


class Derived(torch.optim.SGD):  # type: ignore[misc]
    """Its steps are SGD's, whose hooks are called, too."""

    fails = True

    def step(self, closure: Any = None) -> Any:
        if self.fails:
            raise MemoryError
        return super().step(closure)


def derived_optimizer() -> None:
    """Each of its steps counts once, also after one that has failed."""
    layers = nn.ModuleList([Layer(1.0)])
    optimizer = Derived(layers.parameters(), lr=1.0)
    model, _ = mercury.local_steps(layers, optimizer, plain_outer, every=2)
    for p in model.parameters():
        p.grad = torch.full_like(p, 1.0 + mercury.rank())
    with contextlib.suppress(MemoryError):
        optimizer.step()
    optimizer.fails = False
    for due in (0.0 - mercury.rank(), 1.0 - 2 * (mercury.workers() + 1)):
        optimizer.step()
        assert float(model[0].bias[0]) == due, due


def outer_schedule() -> None:
    """An outer learning rate may change, on all workers alike."""
    made: list[Any] = []

    def outer(copies: list[Any]) -> Any:
        made.append(torch.optim.SGD(copies, lr=1.0))
        return made[-1]

    layers = nn.ModuleList([Layer(1.0)])
    model, optimizer = mercury.local_steps(
        layers, torch.optim.SGD(layers.parameters(), lr=1.0), outer, every=1
    )
    assert len(made) == 1
    for step, rate in enumerate((1.0, 0.5, 0.0)):
        made[0].param_groups[0]["lr"] = rate
        before = float(model[0].bias[0])
        for p in model.parameters():
            p.grad = torch.ones_like(p)
        optimizer.step()
        assert float(model[0].bias[0]) == before - rate, step
    if mercury.workers() > 1:
        made[0].param_groups[0]["lr"] = 1.0 + mercury.rank()
        try:
            optimizer.step()
        except (InvalidArgumentError, PeerLostError) as error:  # or that another has ended for it
            print("told:", error, flush=True)
        else:
            raise AssertionError("nobody heard of it")


def through_a_device() -> None:
    """That copies late."""
    late = staging.Staged(LateCopies())
    with patch("pslite_ext.torch.local_stepping.sender_from", lambda _: late):
        known_updates()
        shared_alike()


def nothing_travels() -> None:
    assert all(peer["packets_sent"] == 0 for peer in mercury.stats()["peers"]), mercury.stats()


def main() -> None:
    torch.set_num_threads(1)
    for name in sys.argv[1:]:
        case: Callable[[], None] = globals()[name]
        case()
        print("as it should be:", name, flush=True)


if __name__ == "__main__":
    main()
