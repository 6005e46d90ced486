"""Scripts with gradients of their own, for torch_uses.py: each worker's are others, and their
average is the gradient of a model that trains alone."""

from __future__ import annotations

import contextlib
from typing import Any

import torch
from torch import nn

from pslite_ext import _core
from tests.integration.torch_pairs import alike, inputs, pair, sgd, step, train_both


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
    """Each in a group of its own, before any other backward."""

    def last_alone(model: Any) -> Any:
        model[:2].requires_grad_(False)
        return torch.optim.SGD(model[2].parameters(), lr=0.1)

    model, optimizer, alone, other = pair(
        lambda: nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 3), nn.Linear(3, 2)), last_alone
    )
    step(model, optimizer, inputs()[0])
    step(alone, other, inputs()[0])
    for one, its in ((model, optimizer), (alone, other)):
        for layer in (one[1], one[0]):
            layer.requires_grad_(True)
            its.add_param_group({"params": layer.parameters(), "lr": 0.05})
    train_both(model, optimizer, alone, other)


OWN_GRADIENTS = (
    hooks_that_change_gradients,
    added_up_after_a_sum,
    set_by_hand_after_a_sum,
    thawed_and_clipped,
    layers_thawed_one_after_the_other,
)
