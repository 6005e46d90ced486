"""How a gradient reaches the core: from the host's memory at once, from a device through it.

    device --copied out--> host, pinned --summed--> host --copied in--> device

Copies have streams of their own, so backward computes on meanwhile; what the device does after a
sum has been waited for comes after the copy in. A sum may start when its copy out is done: one
thread for each device waits for that, in the order in which gradients appeared.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol

import torch

from pslite_ext import _core
from pslite_ext.torch.values import memory

KINDS = ("cpu", "cuda")  # of devices


class SumWork(Protocol):
    """A sum under way, in the memory of the gradient."""

    @property
    def over(self) -> bool: ...

    def wait(self) -> None: ...


class Sender(ABC):
    @abstractmethod
    def sum(self, tensor: _core.Tensor, gradient: Any, priority: int) -> SumWork: ...


class FromHost(Sender):
    def sum(self, tensor: _core.Tensor, gradient: Any, priority: int) -> SumWork:
        work: SumWork = tensor.sum_memory(memory(gradient), priority)
        return work


class Copies(ABC):
    """Between a device and the host."""

    @abstractmethod
    def host_memory(self, like: Any) -> Any:
        """Of the same shape and type, on the host."""

    @abstractmethod
    def begin_out(self, source: Any, host: Any) -> Callable[[], None]:
        """Once all that the device has been told so far is done; what waits for the copy."""

    @abstractmethod
    def begin_in(self, host: Any, target: Any) -> None:
        """What the device is told from now on comes after it."""


class CudaCopies(Copies):
    def __init__(self, device: Any) -> None:
        self._out, self._in = torch.cuda.Stream(device), torch.cuda.Stream(device)

    def host_memory(self, like: Any) -> Any:
        return torch.empty(like.shape, dtype=like.dtype, pin_memory=True)

    def begin_out(self, source: Any, host: Any) -> Callable[[], None]:
        self._out.wait_stream(torch.cuda.current_stream(source.device))
        self._out.wait_stream(self._in)  # it reads what is overwritten here
        with torch.cuda.stream(self._out):
            host.copy_(source, non_blocking=True)
            copied = self._out.record_event()
        source.record_stream(self._out)
        synchronize: Callable[[], None] = copied.synchronize
        return synchronize

    def begin_in(self, host: Any, target: Any) -> None:
        with torch.cuda.stream(self._in):
            target.copy_(host, non_blocking=True)
        target.record_stream(self._in)
        torch.cuda.current_stream(target.device).wait_stream(self._in)


class StagedWork:
    def __init__(self, started: Future[SumWork], copy_in: Callable[[], None]) -> None:
        self._started, self._copy_in = started, copy_in

    @property
    def over(self) -> bool:
        return self._started.done() and self._started.result().over

    def wait(self) -> None:
        """Once: then the sum is the gradient, as far as the device is told of it from here on."""
        self._started.result().wait()
        self._copy_in()


class Staged(Sender):
    """From one device. Each tensor has its place on the host, and keeps it."""

    def __init__(self, copies: Copies) -> None:
        self._copies = copies
        self._hosts: dict[_core.Tensor, Any] = {}
        self._starter = ThreadPoolExecutor(1, "mercury-staging")

    def sum(self, tensor: _core.Tensor, gradient: Any, priority: int) -> SumWork:
        if tensor not in self._hosts:
            self._hosts[tensor] = self._copies.host_memory(gradient)
        host = self._hosts[tensor]
        copied = self._copies.begin_out(gradient.detach(), host)

        def start() -> SumWork:
            copied()
            work: SumWork = tensor.sum_memory(memory(host), priority)
            return work

        def copy_in() -> None:
            self._copies.begin_in(host, gradient.detach())

        return StagedWork(self._starter.submit(start), copy_in)


def sender_from(device: Any) -> Sender:
    return FromHost() if device.type == "cpu" else Staged(CudaCopies(device))
