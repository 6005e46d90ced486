"""Scripts with gradients of their own, for torch_uses.py: each worker's are others, and their
average is the gradient of a model that trains alone."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from pslite_ext import _core
from pslite_ext.torch.entries import entry_of
from tests.integration.torch_pairs import STEPS, alike, inputs, pair, sgd, step, train_both


def _share() -> float:
    """By which this worker's gradients are multiplied: 1 on average, over two workers."""
    return 0.5 + _core.rank()


def _loss(model: Any, x: Any) -> Any:
    return model(x).float().pow(2).sum()


def hooks_that_change_gradients() -> None:
    """They come after `wrap`, as scripts add them at any time."""

    def weigh(parameter: Any) -> None:
        parameter.grad.mul_(_share())

    model, optimizer, alone, other = pair()
    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(weigh)
    train_both(model, optimizer, alone, other)


def added_up_after_a_sum() -> None:
    """The first of several backward passes is summed by itself, as an off-by-one has it."""
    model, optimizer, alone, other = pair(lambda: nn.Linear(4, 2))
    for _ in range(2):
        for number, x in enumerate(inputs()):
            with optimizer.no_sync() if number else contextlib.nullcontext():
                (_loss(model, x) * _share()).backward()
            _loss(alone, x).backward()
        for its in (optimizer, other):
            its.step()
            its.zero_grad()
    alike(model, alone)


class Either(nn.Module):  # type: ignore[misc]
    """Each half has a type of its own, so it travels by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.halves = nn.ModuleList([nn.Linear(4, 2), nn.Linear(4, 2, dtype=torch.float64)])

    def forward(self, x: Any, which: int) -> Any:
        half = self.halves[which]
        return half(x.to(half.weight.dtype))

    def loss(self, x: Any, which: int) -> Any:
        return self(x, which).pow(2).sum()


def added_up_by_each_worker_alone_after_a_sum() -> None:
    """Of one half of the model on each worker; then of no half on worker 0."""
    model, optimizer, alone, other = pair(Either)
    for number, x in enumerate(inputs()):
        (model.loss(x, 0) + model.loss(x, 1)).backward()
        (alone.loss(x, 0) + alone.loss(x, 1)).backward()
        with optimizer.no_sync():
            if number % 2 == 0 or _core.rank():
                model.loss(x, _core.rank()).backward()
        for half in (0, 1) if number % 2 == 0 else (1,):
            (alone.loss(x, half) / 2).backward()
        for its in (optimizer, other):
            its.step()
            its.zero_grad()
    alike(model, alone)


def set_by_hand_after_a_sum() -> None:
    """What a backward has brought is forgotten, and something else is put there."""
    model, optimizer, alone, other = pair(lambda: nn.Linear(4, 2))
    for x in inputs():
        for one, its, share in ((model, optimizer, _share()), (alone, other, 1.0)):
            _loss(one, x + 1).backward()
            its.zero_grad()
            found = torch.autograd.grad(_loss(one, x) * share, list(one.parameters()))
            for parameter, gradient in zip(one.parameters(), found):
                parameter.grad = gradient
            its.step()
            its.zero_grad()
    alike(model, alone)


def thawed_and_clipped() -> None:
    """What was frozen at `wrap` is summed before its norm is read."""

    def frozen(model: Any) -> Any:
        model[0].requires_grad_(False)
        return sgd(model)

    model, optimizer, alone, other = pair(
        lambda: nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2)), frozen
    )
    train_both(model, optimizer, alone, other)
    for one in (model, alone):
        one[0].requires_grad_(True)
        one[1].requires_grad_(False)
    for x in inputs():
        for one, its, share in ((model, optimizer, _share()), (alone, other, 1.0)):
            (_loss(one, x) * share).backward()
            nn.utils.clip_grad_norm_(one.parameters(), 0.5)
            its.step()
            its.zero_grad()
    alike(model, alone)


def layers_thawed_one_after_the_other() -> None:
    """Each in a group of its own, before any other backward. The core learns of no tensor twice:
    what travelled by itself does so in the same one."""

    def last_alone(model: Any) -> Any:
        model[:2].requires_grad_(False)
        return torch.optim.SGD(model[2].parameters(), lr=1e-4)

    model, optimizer, alone, other = pair(
        lambda: nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 256), nn.Linear(256, 257)), last_alone
    )
    step(model, optimizer, inputs()[0])
    step(alone, other, inputs()[0])
    entry = entry_of(model[2].weight)
    assert entry is not None
    before = entry.parcel
    for one, its in ((model, optimizer), (alone, other)):
        for layer in (one[1], one[0]):
            layer.requires_grad_(True)
            its.add_param_group({"params": layer.parameters(), "lr": 1e-5})
    train_both(model, optimizer, alone, other)
    assert entry.parcel is before is not None


class Placed(nn.Module):  # type: ignore[misc]
    """Words and their places; with one text, the gradient of both is the same memory."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(9, 256), nn.Parameter(torch.randn(257, 256))
        self.last = nn.Linear(256, 257)

    def forward(self, x: Any) -> Any:
        return self.last(self.words(x) + self.places[None])


class Detached(torch.autograd.Function):  # type: ignore[misc]
    """A sum that hands out its gradient as compiled graphs do: of memory that is not said to be
    shared."""

    @staticmethod
    def forward(_: Any, one: Any, other: Any) -> Any:
        return one + other

    @staticmethod
    def backward(_: Any, gradient: Any) -> Any:
        return gradient.detach(), gradient.detach()


class Added(nn.Module):  # type: ignore[misc]
    """Two parameters whose gradients are the same memory. Large ones travel alone, small ones
    together."""

    def __init__(self, add: Callable[[Any, Any], Any], rows: int = 257) -> None:
        super().__init__()
        self.one, self.other = (nn.Parameter(torch.randn(rows, 256)) for _ in range(2))
        self.add = add

    def forward(self, x: Any) -> Any:
        return self.add(self.one, self.other) * x


def gradients_that_share_memory() -> None:
    """What travels alone is summed where it is if nobody else has that memory; what has come
    together is put back there."""
    by_views: Callable[[Any, Any], Any] = lambda one, other: one.view(-1) + other.view(-1)  # noqa: E731
    by_hand: Callable[[Any, Any], Any] = lambda one, other: Detached.apply(one, other).view(-1)  # noqa: E731
    torch.manual_seed(6)
    words = torch.randint(9, (2 * STEPS, 2, 1, 257))  # of both workers
    cases: list[tuple[Callable[[], Any], Any]] = [(Placed, words)]
    for rows in (257, 3):
        factors = torch.randn(2 * STEPS, 2, rows * 256)
        cases += [(functools.partial(Added, add, rows), factors) for add in (by_views, by_hand)]
    for make, batches in cases:
        for backwards in (1, 2):
            model, optimizer, alone, other = pair(make)
            for number, both in enumerate(batches, 1):
                is_last = number % backwards == 0
                with contextlib.nullcontext() if is_last else optimizer.no_sync():
                    model(both[_core.rank()]).pow(2).mean().backward()
                sum(alone(x).pow(2).mean() / 2 for x in both).backward()
                for its in (optimizer, other) if is_last else ():
                    its.step()
                    its.zero_grad()
            alike(model, alone)


class Read(nn.Module):  # type: ignore[misc]
    """The last two gradients, which travel together, are the memory of what goes on to the first
    layer; before that, somebody reads them."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 6, dtype=torch.float64)
        self.last = nn.ParameterList(nn.Parameter(torch.randn(2, 3)) for _ in range(2))
        self.found: list[Any] = []

    def forward(self, x: Any) -> Any:
        between = self.first(x.double()).float()
        between.register_hook(self.read)
        return between + self.last[0].view(-1) + self.last[1].view(-1)

    def read(self, _: Any) -> None:
        self.found = [parameter.grad for parameter in self.last]


def read_while_others_need_their_memory() -> None:
    model, optimizer, alone, other = pair(Read)
    for both in torch.randn(STEPS, 2, 4):  # of both workers
        model(both[_core.rank()]).pow(2).sum().backward()
        assert not any(gradient is None for gradient in model.found)
        sum(alone(x).pow(2).sum() / 2 for x in both).backward()
        for its in (optimizer, other):
            its.step()
            its.zero_grad()
    alike(model, alone)


def _added(rows: int = 257) -> Any:
    return Added(lambda one, other: one.view(-1) + other.view(-1), rows)


def set_by_hand_in_memory_that_is_shared() -> None:
    """Autograd hands out one gradient for both, and the script keeps it."""
    for rows in (257, 3):
        _set_by_hand_in_shared_memory(rows)


def _set_by_hand_in_shared_memory(rows: int) -> None:
    steep: Callable[[Any], Any] = lambda model: torch.optim.SGD(model.parameters(), lr=100.0)  # noqa: E731
    model, optimizer, alone, other = pair(functools.partial(_added, rows), steep)
    for number in range(STEPS):
        factors = torch.randn(2, rows * 256)  # of both workers
        found = torch.autograd.grad(
            model(factors[_core.rank()]).pow(2).mean(), [*model.parameters()]
        )
        assert found[0].data_ptr() == found[1].data_ptr()
        before = found[0].clone()
        for parameter, gradient in zip(model.parameters(), found):
            parameter.grad = gradient
        sum(alone(x).pow(2).mean() / 2 for x in factors).backward()
        for its in (optimizer, other):
            its.step()
            its.zero_grad(set_to_none=number % 2 == 0)  # else the sum is to be in `.grad` first
        alike(model, alone)
        assert torch.equal(found[0], before)


def hooks_that_put_one_tensor_into_several() -> None:
    """Into two gradients, again and again."""
    model, optimizer, alone, other = pair(_added)
    for one, share in ((model, _share()), (alone, 1.0)):
        put = torch.full((257, 256), share)
        for parameter in one.parameters():
            parameter.register_post_accumulate_grad_hook(lambda p, g=put: setattr(p, "grad", g))
    for _ in range(STEPS):
        for one, its in ((model, optimizer), (alone, other)):
            one(torch.ones(257 * 256)).sum().backward()
            its.step()
            its.zero_grad()
    alike(model, alone)


def gradients_are_summed_where_they_are() -> None:
    """If nobody else has that memory: a view of it is no other."""
    model, _, _, _ = pair(lambda: nn.Linear(300, 300))
    came: list[int] = []
    weight = model.weight
    weight.register_post_accumulate_grad_hook(lambda its: came.append(its.grad.data_ptr()))
    _loss(model, torch.ones(2, 300)).backward()
    assert came == [weight.grad.data_ptr()]


OWN_GRADIENTS = (
    hooks_that_change_gradients,
    added_up_after_a_sum,
    added_up_by_each_worker_alone_after_a_sum,
    set_by_hand_after_a_sum,
    thawed_and_clipped,
    layers_thawed_one_after_the_other,
    gradients_that_share_memory,
    read_while_others_need_their_memory,
    set_by_hand_in_memory_that_is_shared,
    hooks_that_put_one_tensor_into_several,
    gradients_are_summed_where_they_are,
)
