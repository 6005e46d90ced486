"""How a gradient reaches the core: from the host's memory at once, from a device through it.

    device --copied out--> host, pinned --summed--> host --copied in--> device

Large gradients go in chunks: one is sent when it is on the host, and copied back when its sum is,
whether or not anybody waits for it yet. Copies have streams of their own, so the device computes on
meanwhile; what it does after a sum has been waited for comes after the copy in. For each device,
one thread waits for copies out, in the order in which gradients appeared, and one for sums.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from threading import Event, Semaphore, Thread
from typing import Any, Protocol

import torch

from pslite_ext import _core
from pslite_ext.torch.values import memory, type_name

KINDS = ("cpu", "cuda")  # of devices
CHUNK_BYTES = 2 << 20
# What a device makes of its gradients itself, so that copies are smaller.
CAST = {"bf16": torch.bfloat16, "fp16": torch.float16}
Place = Callable[[], AbstractContextManager[Any]]


class SumWork(Protocol):
    """A sum under way, in the memory of the gradient."""

    @property
    def over(self) -> bool: ...

    def wait(self) -> None: ...


class Sender(ABC):
    def tensor(
        self, key: int, name: str, dtype: Any, shape: Sequence[int], label: str, codec: str
    ) -> _core.Tensor:
        """For gradients of that type, which travel as the codec says."""
        tensor = _core.Tensor(key, name, type_name(dtype), shape, label=label)
        tensor.set_compression(codec, 0.5)
        return tensor

    @abstractmethod
    def sum(self, tensor: _core.Tensor, gradient: Any, priority: int) -> SumWork: ...

    def here(self) -> Place | None:
        """Where the thread has the device work now, if there is a choice. Of what is late, it has
        the device do that there, too: in a context of the answer's. What it asks for afterwards
        comes after that."""
        return None


class FromHost(Sender):
    def sum(self, tensor: _core.Tensor, gradient: Any, priority: int) -> SumWork:
        work: SumWork = tensor.sum_memory(memory(gradient), priority)
        return work


class Copies(ABC):
    """Between a device and the host. What is begun on one side keeps its order."""

    @abstractmethod
    def host_memory(self, like: Any, dtype: Any) -> Any:
        """Of the same shape, on the host."""

    @abstractmethod
    def begin_out(self, source: Any, host: Any) -> Callable[[], None]:
        """Once all that the device has been told so far is done; what waits for the copy. The
        device makes the host's type of it."""

    @abstractmethod
    def begin_in(self, host: Any, target: Any) -> Callable[[], None]:
        """From any thread. What the device is told once the answer has been called comes after the
        copy; it is called by the thread that uses the device. The device makes its type of it."""

    def here(self) -> Place | None:
        """A sender's."""
        return None


class CudaCopies(Copies):
    def __init__(self, device: Any) -> None:
        self._device = device
        self._out, self._in = torch.cuda.Stream(device), torch.cuda.Stream(device)

    def host_memory(self, like: Any, dtype: Any) -> Any:
        return torch.empty(like.shape, dtype=dtype, device="cpu", pin_memory=True)

    def begin_out(self, source: Any, host: Any) -> Callable[[], None]:
        # That comes after the last copy in to this memory, too: somebody has waited for it.
        self._out.wait_stream(torch.cuda.current_stream(source.device))
        with torch.cuda.stream(self._out):
            host.copy_(source.to(host.dtype), non_blocking=True)
            copied = self._out.record_event()
        source.record_stream(self._out)
        synchronize: Callable[[], None] = copied.synchronize
        return synchronize

    def begin_in(self, host: Any, target: Any) -> Callable[[], None]:
        with torch.cuda.stream(self._in):
            if host.dtype != target.dtype:
                host = host.to(target.device, non_blocking=True)
            target.copy_(host, non_blocking=True)
            copied = self._in.record_event()
        target.record_stream(self._in)
        return lambda: torch.cuda.current_stream(target.device).wait_event(copied)

    def here(self) -> Place:
        return partial(_in_stream, torch.cuda.current_stream(self._device))


@contextmanager
def _in_stream(stream: Any) -> Iterator[None]:
    now = torch.cuda.current_stream(stream.device)
    if now == stream:
        yield
        return
    with torch.cuda.stream(stream):
        yield
    now.wait_stream(stream)


class StagedWork:
    """`chunks`: of the host's memory and the device's."""

    def __init__(self, copies: Copies, chunks: Sequence[tuple[Any, Any]]) -> None:
        self._copies, self._chunks = copies, chunks
        self._work: _core.Work | None = None
        self._filled: Future[None] | None = None
        self._joins: list[Callable[[], None]] = []
        self._failure: BaseException | None = None
        self._back = Event()

    def start(self, work: _core.Work, starter: ThreadPoolExecutor) -> None:
        """Copies all out, and says of each chunk that it is there."""
        self._work = work
        copied = [self._copies.begin_out(device, host) for host, device in self._chunks]
        self._filled = starter.submit(self._fill, work, copied)

    def _fill(self, work: _core.Work, copied: Sequence[Callable[[], None]]) -> None:
        size = 0
        for wait, (host, _) in zip(copied, self._chunks):
            wait()
            size += host.nbytes
            work.ready(size)

    def land(self, chunk: int) -> None:
        """It is on the host."""
        host, device = self._chunks[chunk]
        try:
            with torch.inference_mode(device.is_inference()):
                self._joins.append(self._copies.begin_in(host, device))
        except BaseException as error:  # of whatever kind: who waits is told
            self._failure = error

    def end(self) -> None:
        """Nothing more will land."""
        self._back.set()

    @property
    def over(self) -> bool:
        assert self._work is not None
        return self._back.is_set() and self._work.over

    def wait(self) -> None:
        """Once: then the sum is the gradient, as far as the device is told of it from here on."""
        assert self._work is not None
        assert self._filled is not None
        self._filled.result()
        self._work.wait()
        self._back.wait()
        if self._failure is not None:
            raise self._failure
        for join in self._joins:
            join()


class Staged(Sender):
    """From one device. Each tensor has its place on the host, and keeps it."""

    def __init__(self, copies: Copies) -> None:
        self._copies = copies
        self._hosts: dict[_core.Tensor, Any] = {}
        self._types: dict[_core.Tensor, Any] = {}  # of those that the device casts
        self._starter = ThreadPoolExecutor(1, "mercury-staging")
        self._chunks = _core.Chunks()
        self._numbers = itertools.count()
        self._under_way: dict[int, StagedWork] = {}
        self._begun = Semaphore(0)
        # Nobody waits for it when Python ends: what it waits for may never come.
        self._lander = Thread(target=self._land, name="mercury-landing", daemon=True)

    def tensor(
        self, key: int, name: str, dtype: Any, shape: Sequence[int], label: str, codec: str
    ) -> _core.Tensor:
        cast = CAST.get(codec)
        if cast is None:
            return super().tensor(key, name, dtype, shape, label, codec)
        tensor = super().tensor(key, name, cast, shape, label, "none")
        self._types[tensor] = cast
        return tensor

    def sum(self, tensor: _core.Tensor, gradient: Any, priority: int) -> SumWork:
        if tensor not in self._hosts:
            dtype = self._types.get(tensor, gradient.dtype)
            with torch.inference_mode(False):  # others will write to it, too
                self._hosts[tensor] = self._copies.host_memory(gradient, dtype)
        host = self._hosts[tensor]
        count = max(CHUNK_BYTES // host.element_size(), 1)
        chunks = [*zip(_cut(host, count), _cut(gradient.detach(), count))]
        work = StagedWork(self._copies, chunks)
        number = next(self._numbers)
        self._under_way[number] = work
        size = count * host.element_size()
        began = tensor.sum_chunks(memory(host), self._chunks, size, number, priority)
        self._begun.release()
        work.start(began, self._starter)
        if self._lander.ident is None:
            self._lander.start()
        return work

    def here(self) -> Place | None:
        return self._copies.here()

    def _land(self) -> None:
        """Copies in whatever is there, as long as anything is under way."""
        while True:
            self._begun.acquire()
            while not self._land_one():
                pass

    def _land_one(self) -> bool:
        """Whether a sum is over with it."""
        landed = self._chunks.pop()
        if landed is None:
            return False
        number, chunk = landed
        if chunk is None:
            self._under_way.pop(number).end()
        elif number in self._under_way:
            self._under_way[number].land(chunk)
        return chunk is None


def _cut(whole: Any, elements: int) -> Any:
    return whole.view(-1).split(elements)


def sender_from(device: Any) -> Sender:
    return FromHost() if device.type == "cpu" else Staged(CudaCopies(device))


class Devices:
    """Those that some tensors are on, for a thread which is not the one that uses them."""

    def __init__(self, tensors: Iterable[Any]) -> None:
        self._devices = {tensor.device for tensor in tensors if tensor.device.type != "cpu"}
        self._told = [torch.cuda.current_stream(d).record_event() for d in self._devices]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._devices)

    @contextmanager
    def apart(self) -> Iterator[None]:
        """What they are told in here comes after what they had been told when this was made, and
        is done in the end; nothing waits for what they are told meanwhile."""
        with ExitStack() as streams:
            own = [torch.cuda.Stream(device) for device in self._devices]
            for stream in own:
                streams.enter_context(torch.cuda.stream(stream))
                for event in self._told:
                    stream.wait_event(event)
            yield
            for stream in own:
                stream.synchronize()
