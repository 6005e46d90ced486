"""What of an optimizer the server does, and what is left to the workers.

Momentum is a state of the model: a worker that kept it would mix in updates of its own alone. So
that of SGD goes to the server, and workers apply the rest. Any other optimizer, and any class
derived from SGD, stays whole on the worker: its states know that worker's gradients.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import torch

from pslite_ext.errors import InvalidArgumentError
from pslite_ext.fabric import Rule

Groups = Sequence[dict[str, Any]]


def rule_of(kind: type[Any], groups: Groups) -> Rule:
    """What the server is asked to do with updates."""
    if kind is not torch.optim.SGD:
        return Rule()
    used = {_momentum_in(group) for group in groups}
    if len(used) > 1:
        found = ", ".join(sorted(f"{momentum:g}" for momentum, _, _ in used))
        _refuse(
            f"the groups of the optimizer have momentum {found}, or differ in nesterov or "
            "dampening: the server has one for the whole model"
        )
    momentum, nesterov, dampening = used.pop()
    if dampening:
        _refuse(f"SGD with dampening {dampening:g}: the server's momentum has none; leave it out")
    if not 0 <= momentum < 1:
        _refuse(f"SGD with momentum {momentum:g}: the server's is 0 or more, and below 1")
    return Rule(momentum, nesterov)


def _momentum_in(group: dict[str, Any]) -> tuple[float, bool, float]:
    momentum = float(group["momentum"])
    if momentum == 0:
        return 0.0, False, 0.0
    return momentum, bool(group["nesterov"]), float(group["dampening"])


def _refuse(text: str) -> NoReturn:
    raise InvalidArgumentError(f"mercury.fabric: {text}")


@contextmanager
def left_to_the_server(kind: type[Any], groups: Groups, rule: Rule) -> Iterator[None]:
    """In this context, the optimizer has none of the momentum that the server applies."""
    if kind is torch.optim.SGD and (now := rule_of(kind, groups)) != rule:
        raise InvalidArgumentError(
            f"the optimizer's momentum is {now.momentum:g} now, and the server applies "
            f"{rule.momentum:g}, with which the job began: leave it as it is (OneCycleLR and "
            "CyclicLR need cycle_momentum=False)"
        )
    if rule == Rule():
        yield
        return
    for group in groups:
        group["momentum"] = 0.0
    try:
        yield
    finally:
        for group in groups:
            group["momentum"] = rule.momentum
