"""What local steps send: by how much a worker's parameters differ from those that all have alike.

Small neighbours travel together, as gradients do. What comes back is the average over all workers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from pslite_ext import _core
from pslite_ext.errors import InvalidArgumentError
from pslite_ext.torch.layouts import in_memory
from pslite_ext.torch.staging import Sender, SumWork


class SharedParameter:
    """One parameter: this worker's, and the copy beside it that is the same on all workers."""

    def __init__(self, name: str, parameter: Any, codec: str) -> None:
        self.name, self.parameter = name, parameter
        self.narrowest = codec
        self.dtype, self.device = parameter.dtype, parameter.device
        self.stride = parameter.stride()
        with torch.no_grad():
            copy = torch.empty_like(parameter, requires_grad=False).copy_(parameter)
        self.shared = torch.nn.Parameter(copy)

    def check(self) -> None:
        """Whether it is as it was."""
        now = self.parameter
        if (now.dtype, now.device, now.stride()) != (self.dtype, self.device, self.stride):
            raise InvalidArgumentError(
                f"parameter '{self.name}' is {now.dtype} on {now.device} with strides "
                f"{tuple(now.stride())}, but it was {self.dtype} on {self.device} with strides "
                f"{tuple(self.stride)}: convert the model before mercury.local_steps"
            )

    def is_apart(self) -> bool:
        """From the copy."""
        own, shared = self.parameter, self.shared
        kinds = (own.dtype, own.device), (shared.dtype, shared.device)
        return kinds[0] != kinds[1] or not torch.equal(own, shared)


class Delta:
    """Of some neighbours, as one tensor. Without a sender there is only this worker."""

    def __init__(
        self, members: Sequence[SharedParameter], sender: Sender | None, workers: int
    ) -> None:
        self.members = members
        self.workers = workers  # that it is divided by, on all workers alike
        self.size = sum(member.parameter.numel() for member in members)
        self._sender = sender if self.size else None
        self._tensor: _core.Tensor | None = None
        self._work: SumWork | None = None
        self._memory: Any = None  # from sending to applying

    @property
    def name(self) -> str:
        first, last = self.members[0].name, self.members[-1].name
        return first if first == last else f"{first} to {last} ({len(self.members)})"

    def announced(self, key: int) -> None:
        """From here on, the core knows it."""
        if self._sender is None:
            return
        first = self.members[0]
        shape = list(first.parameter.shape) if len(self.members) == 1 else [self.size]
        if first.dtype.is_complex:
            shape.append(2)
        label = f"deltas of {self.name}"
        self._tensor = self._sender.tensor(
            key, self.name, first.dtype.to_real(), shape, label, first.narrowest
        )

    def send(self, priority: int) -> None:
        """The copy less this worker's values, as they are now."""
        first = self.members[0]
        self._memory = torch.empty(self.size, dtype=first.dtype, device=first.device)
        for member, place in zip(self.members, self._places()):
            torch.sub(member.shared, member.parameter, out=place)
        if self._tensor is not None:
            assert self._sender is not None
            self._memory.div_(self.workers)
            self._work = self._sender.sum(self._tensor, in_memory(self._memory), priority)

    def wait(self) -> None:
        """Until it is the average."""
        if self._work is None:
            return
        self._work.wait()
        self._work = None
        assert self._tensor is not None
        if _core.elastic() and (summed := self._tensor.workers()) != self.workers:
            self._memory.mul_(self.workers / summed)

    def take(self) -> list[Any]:
        """The averages, one for each parameter."""
        self.wait()
        places = self._places()
        self._memory = None
        return places

    def _places(self) -> list[Any]:
        """Each one's in the memory, in its parameter's order."""
        places, begin = [], 0
        for member in self.members:
            shape = member.parameter.shape
            places.append(self._memory.as_strided(shape, member.stride, begin))
            begin += member.parameter.numel()
        return places

    # --- for checkpoints --------------------------------------------------------------------------

    def received(self) -> Any:
        """What has not been applied yet; None if there is nothing."""
        self.wait()
        return self._memory

    def restore(self, received: Any) -> None:
        self._memory = received if received is None else received.to(self.members[0].device)
