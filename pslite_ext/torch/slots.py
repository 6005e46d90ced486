"""A parameter's gradient on its way: from where it appears until the parameter is updated.

While a sum is under way its memory is the core's. Whoever reads `.grad` then waits for the sum,
and after the optimizer's step for the update, whatever code it is (clipping, GradScaler, a
script): the parameter's class says so. Its values may be older after the step: whoever gets the
parameter from its module, copies or pickles it, or takes its `.data`, waits for the update.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from pslite_ext import _core
from pslite_ext.errors import PsliteError
from pslite_ext.torch.alone import refuse_sparse
from pslite_ext.torch.staging import Way, Work

_grad, _data = torch.Tensor.grad, torch.Tensor.data
_is_compiling = getattr(torch.compiler, "is_compiling", lambda: False)  # before torch 2.3


def raw_grad(parameter: Any) -> Any:
    """`.grad` as it is now, without waiting."""
    return _grad.__get__(parameter)


def set_raw_grad(parameter: Any, value: Any) -> None:
    _grad.__set__(parameter, value)


class SummedParameter(torch.nn.Parameter):  # type: ignore[misc]
    """A parameter whose gradient is summed over all workers."""

    @property
    def grad(self) -> Any:
        slot = self.__dict__.get("_mercury_slot")
        if slot is not None:
            slot.settle()
        return raw_grad(self)

    @grad.setter
    def grad(self, value: Any) -> None:
        slot = self.__dict__.get("_mercury_slot")
        if slot is not None:
            slot.replace(value)
        set_raw_grad(self, value)

    @grad.deleter
    def grad(self) -> None:
        self.grad = None

    @property
    def data(self) -> Any:
        return _data.__get__(up_to_date(self))

    @data.setter
    def data(self, value: Any) -> None:
        _data.__set__(up_to_date(self), value)

    def __repr__(self) -> str:
        return repr(torch.nn.Parameter(self.data, self.requires_grad))


def up_to_date(parameter: Any) -> Any:
    """The parameter, when the last step's update of it is done.

    In a graph of torch.compile's nothing waits: that is done before the graph.
    """
    if _is_compiling():
        return parameter
    slot = None if parameter is None else parameter.__dict__.get("_mercury_slot")
    if slot is not None:
        slot.finish()
    return parameter


class OwnParameters(dict):  # type: ignore[type-arg]
    """A module's parameters by name: who gets one from here gets it up to date."""

    def __getitem__(self, name: str) -> Any:
        return up_to_date(super().__getitem__(name))

    def get(self, name: str, default: Any = None) -> Any:
        return up_to_date(super().get(name, default))

    def values(self) -> Any:
        return [up_to_date(parameter) for parameter in super().values()]

    def items(self) -> Any:
        return [(name, up_to_date(parameter)) for name, parameter in super().items()]

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self.items()),)  # a copy of the module waits for nobody


class Slot:
    """One parameter's. `total` is its gradient from submission to update, or to being replaced.

    `update` does what is left of the optimizer's step for it; `used` waits until it is known
    whether any worker had a gradient, and says so.
    """

    def __init__(
        self,
        name: str,
        parameter: Any,
        way: Way,
        update: Callable[[Slot], None],
        used: Callable[[Slot], bool],
    ) -> None:
        self.name = name
        self._way = way
        self._update, self._used = update, used
        self.parameter = parameter
        self.tensor: _core.Tensor | None = None
        self.priority = 0
        self.total: Any = None
        self.idle = False  # this worker had no gradient: whether another had is not known yet
        self.stepped = False  # the optimizer has been told; the update is still to come
        self._work: Work | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()  # a copy of the parameter, or a pickled one, is nobody's

    def send(self, grad: Any, workers: int) -> None:
        """Starts the average of `grad` over all workers, in its own memory."""
        if grad.is_sparse:
            refuse_sparse(self.name)
        self.wait()
        if not grad.is_contiguous():
            grad = grad.contiguous()
            set_raw_grad(self.parameter, grad)
        grad.detach().div_(workers)
        self.total = grad
        if self.tensor is not None:
            self._work = self._way.sum(self.tensor, grad, self.priority)

    def send_zeros(self, workers: int) -> None:
        """The others may have a gradient, and wait for this worker's."""
        self.send(torch.zeros_like(self.parameter, memory_format=torch.contiguous_format), workers)
        self.idle = True

    @property
    def arrived(self) -> bool:
        return not self.idle and (self._work is None or self._work.over)

    def wait(self) -> None:
        if self._work is not None:
            try:
                self._work.wait()
            except PsliteError as error:
                # What workers disagree on, before what came of that.
                assert self.tensor is not None
                self.tensor.check()
                raise error from None
            self._work = None
        if self.idle:
            self.idle = False
            if not self._used(self):
                self.total = None
            elif not self.stepped:
                set_raw_grad(self.parameter, self.total)

    def settle(self) -> None:
        """The gradient may be read, and written, from here on."""
        self.wait()
        self.finish()

    def finish(self) -> None:
        """The parameter may be read, and written, from here on."""
        if self.stepped:
            self._update(self)

    def replace(self, value: Any) -> None:
        """The script has set `.grad`. What the optimizer has been told of stays as it is."""
        if not self.stepped:
            self.total = None if self.total is None else value

    def clear(self) -> None:
        self.total = None
        self.idle = self.stepped = False
