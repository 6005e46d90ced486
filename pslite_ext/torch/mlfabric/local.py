"""Asynchronous local steps: what several steps of a worker's own optimizer have changed is one
update, and nobody waits for anybody.

The whole optimizer stays on the worker. The outer one is the server's: it adds each worker's part
of an average as it comes, with momentum if it is asked to.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

import torch

from pslite_ext.errors import InvalidArgumentError
from pslite_ext.fabric import Rule, Worker
from pslite_ext.job.leaving import at_exit, uncaught
from pslite_ext.torch.mlfabric.momentum import rule_of
from pslite_ext.torch.mlfabric.steps import CALLER, ModelPushes


class Local(NamedTuple):
    """What a script asks for."""

    every: int
    rate: float = 1.0  # of the average of all workers' changes
    rule: Rule = Rule()

    def __str__(self) -> str:
        outer = f"rate {self.rate:g}, momentum {self.rule.momentum:g}"
        return f"every={self.every}, outer: {outer}{', Nesterov' * self.rule.nesterov}"


def local_of(every: Any, outer: Any) -> Local | None:
    """None: each step is an update."""
    if isinstance(every, bool) or not isinstance(every, int) or every < 1:
        _refuse(f"every is {every!r}; a whole number is needed, 1 or more")
    if outer is None:
        return Local(every) if every > 1 else None
    if isinstance(outer, torch.optim.Optimizer) or not callable(outer):
        _refuse(
            "outer is to be a function that is given a list of tensors and returns an optimizer of "
            "them: lambda copies: torch.optim.SGD(copies, lr=0.7)"
        )
    made = outer([torch.nn.Parameter(torch.zeros(1))])
    if type(made) is not torch.optim.SGD:
        _refuse(
            f"outer returned a {type(made).__name__}; a torch.optim.SGD is needed: it runs on the "
            "server, which knows no other"
        )
    (group,) = made.param_groups
    if group["weight_decay"] or group["maximize"] or not 0 < group["lr"] < float("inf"):
        _refuse("outer's SGD must have a learning rate above 0, no weight_decay and no maximize")
    return Local(every, float(group["lr"]), rule_of(torch.optim.SGD, made.param_groups))


def _refuse(text: str) -> NoReturn:
    raise InvalidArgumentError(f"{CALLER}: {text}")


class LocalPushes(ModelPushes):
    def __init__(
        self,
        model: Any,
        optimizer: Any,
        names: dict[Any, str],
        step: Callable[..., Any],
        local: Local,
    ) -> None:
        self.rule = local.rule
        super().__init__(model, optimizer, names, step)
        self._local = local
        self._taken = 0  # steps since the model was got

    def begin(self, worker: Worker) -> None:
        super().begin(worker)
        self.share = self._local.rate / worker.num_workers
        at_exit(self._say_what_is_left)

    def step(self, *args: Any, **kwargs: Any) -> Any:
        result = super().step(*args, **kwargs)
        self._taken += 1
        if self._taken == self._local.every:
            self.exchange()
        return result

    def exchange(self) -> None:
        self._taken = 0
        super().exchange()

    def _say_what_is_left(self) -> None:
        """Nobody would get it from a worker that is about to leave."""
        if self._taken and uncaught() is None:
            print(
                f"mercury: this worker's last steps ({self._taken} of every={self._local.every}) "
                "are in no update: let all workers call optimizer.synchronize() at the end",
                file=sys.stderr,
            )

    def meet(self) -> None:
        if self._taken:
            self.exchange()
        super().meet()
