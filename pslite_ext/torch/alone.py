"""A wrapped model's training in a job of one worker: there is nothing to sum, so nothing travels.

Gradients and updates are plain torch's. What is refused among several workers is refused here,
too, so that a script which runs alone runs among them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pslite_ext.errors import InvalidArgumentError


def refuse_sparse(name: str) -> None:
    raise InvalidArgumentError(
        f"parameter '{name}' has a sparse gradient: give its embedding sparse=False"
    )


def check_step(optimizer: Any, wrapped: Any, has_gradient: bool) -> None:
    """Whether the optimizer may step: it has the parameters that it had, and a gradient."""
    now = {p for group in optimizer.param_groups for p in group["params"]}
    if now != wrapped:
        raise InvalidArgumentError(
            "the optimizer's parameters are not those it had when it was wrapped: wrap the "
            "model when all of them are there"
        )
    if not has_gradient:
        raise InvalidArgumentError(
            "optimizer.step() without backward(): no parameter has a gradient"
        )


class Wrapped:
    """Marks a parameter; a copy of it, or a pickled one, is nobody's."""

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()


class Alone:
    """What Training is among several workers."""

    def __init__(self, optimizer: Any, names: dict[Any, str], step: Callable[[Any], Any]) -> None:
        self._optimizer, self._step = optimizer, step
        self._names = {p: names[p] for group in optimizer.param_groups for p in group["params"]}
        for parameter in names:
            parameter._mercury_slot = Wrapped()

    def step(self) -> None:
        gradients = [(p, p.grad) for p in self._names]
        check_step(
            self._optimizer, self._names.keys(), any(grad is not None for _, grad in gradients)
        )
        for parameter, grad in gradients:
            if grad is not None and grad.is_sparse:
                refuse_sparse(self._names[parameter])
        self._step(self._optimizer)

    def synchronize(self) -> None:
        """Nothing is under way."""

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        yield

    def forget_gradients(self) -> None:
        for parameter in self._names:
            parameter.grad = None
