"""A wrapped model's training in a job of one worker: there is nothing to sum, so nothing travels.

Gradients and updates are plain torch's. What is refused among several workers is refused here,
too, so that a script which runs alone runs among them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import filterfalse
from typing import Any

from pslite_ext.torch.checks import check_parameters, check_step, names_of
from pslite_ext.torch.entries import refuse_sparse, wrapped
from pslite_ext.torch.modules import Hook, is_scripted, refuse_assign
from pslite_ext.torch.optimizers import parameters_of


class Wrapped:
    """Marks a parameter."""


class Alone:
    """What Training is among several workers."""

    def __init__(
        self, model: Any, optimizer: Any, names: dict[Any, str], step: Callable[..., Any]
    ) -> None:
        self._model, self._optimizer, self._step = model, optimizer, step
        self._names: dict[Any, str] = {}
        self._marks = {parameter: Wrapped() for parameter in names}
        wrapped.update((id(parameter), mark) for parameter, mark in self._marks.items())
        self._take_parameters()
        for module in filterfalse(is_scripted, model.modules()):
            module._register_load_state_dict_pre_hook(Hook(refuse_assign))

    def add_parameters(self) -> None:
        self._take_parameters()

    def _take_parameters(self) -> None:
        given = parameters_of(self._optimizer)
        self._names = check_parameters(given, names_of(self._model))

    def step(self, *args: Any, **kwargs: Any) -> Any:
        closure = kwargs.get("closure", args[0] if args else None)
        if closure is None:
            self._check()
        elif args:
            args = (self._checked(closure), *args[1:])
        else:
            kwargs = {**kwargs, "closure": self._checked(closure)}
        return self._step(self._optimizer, *args, **kwargs)

    def _checked(self, closure: Callable[[], Any]) -> Callable[[], Any]:
        def checked() -> Any:
            loss = closure()
            self._check()
            return loss

        return checked

    def _check(self) -> None:
        gradients = [parameter.grad for parameter in self._names]
        check_step(self._optimizer, self._names, any(grad is not None for grad in gradients))
        for name, grad in zip(self._names.values(), gradients):
            if grad is not None and grad.is_sparse:
                refuse_sparse(name)

    def synchronize(self) -> None:
        """Nothing is under way."""

    finish_updates = loaded = meet = synchronize

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        yield

    def forget_gradients(self) -> None:
        for parameter in self._names:
            parameter.grad = None
