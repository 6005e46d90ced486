"""What travels as one tensor: a large parameter's gradient, or those of small neighbours together.

Each tensor on its way costs time, however small it is. Small neighbours in the order of use are
needed, and appear, at about the same time, so they lose little by waiting for each other. They
travel in memory of the parcel's own, from which an optimizer that keeps no gradient reads their
sums; a gradient that travels alone is summed where it is, if its memory is in the order that
workers have agreed on.

A parcel is also a part of the optimizer's step: its parameters are updated together.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, Protocol

import torch

from pslite_ext import _core
from pslite_ext.job.wire import codec_for
from pslite_ext.torch.entries import ParameterEntry, raw_grad, unheard
from pslite_ext.torch.layouts import in_memory
from pslite_ext.torch.modes import outside_of_modes
from pslite_ext.torch.staging import Place, Sender, SumWork
from pslite_ext.torch.values import type_name
from pslite_ext.wire_words import AUTO

# Parameters that are smaller than this together share a parcel.
PARCEL_ELEMENTS = 1 << 16


class Neighbour(Protocol):
    """What may travel with others."""

    parameter: Any
    dtype: Any
    device: Any
    narrowest: str


def numbered(entries: Iterable[Neighbour]) -> list[int]:
    """For each entry, in the order of use, the number of its parcel."""
    numbers: list[int] = []
    kind, room, number = None, 0, -1
    for entry in entries:
        # One that is frozen is sent at the end of the backward: the others are not to wait for it.
        own = (entry.dtype, entry.device, entry.narrowest, entry.parameter.requires_grad)
        size = entry.parameter.numel()
        if own != kind or size > room:
            kind, room, number = own, PARCEL_ELEMENTS, number + 1
        room -= size
        numbers.append(number)
    return numbers


@contextmanager
def _in_no_mode() -> Iterator[None]:
    """Whatever mode the code is in that needs a gradient."""
    with torch.inference_mode(False), torch.no_grad(), unheard():
        yield


class Parcel:
    """`used` waits until it is known whether any worker had a gradient, and says so; `update` does
    what is left of the optimizer's step for this parcel. `lends`: the optimizer may have sums that
    are in this parcel's memory, which is that of the next ones."""

    def __init__(
        self,
        entries: Sequence[ParameterEntry],
        sender: Sender,
        used: Callable[[ParameterEntry], bool],
        update: Callable[[Parcel], None],
        waited: Callable[[float], None],
        lends: bool,
    ) -> None:
        self.entries = entries
        self.in_place = len(entries) == 1  # the gradient is summed where it is
        # Whose gradients are complete, and have not been sent.
        self.ready: set[ParameterEntry] = set()
        self.sent = False  # in the backward under way
        self.stepped = False  # the optimizer has been told; the update is still to come
        self.at_rest = True  # nothing is to be waited for
        self.lends = lends
        self.priority = 0
        self._sender, self._used, self._update, self._waited = sender, used, update, waited
        self._tensor: _core.Tensor | None = None
        self._work: SumWork | None = None
        self._here: Place = nullcontext  # where the backward was
        # Of the sum under way: its memory, and what it was divided by.
        self._under_way: tuple[Any, int] = (None, 1)
        self._together: Any = None  # memory of its own
        self._places: list[Any] = []  # each one's in it, in the order that was claimed
        self._on_their_way: list[tuple[ParameterEntry, Any]] = []  # whose sums are in these places
        self._has_idle = False

    def take_up(self) -> None:
        """Its parameters' gradients travel in it from here on, perhaps once more."""
        self.sent = False
        self.ready.clear()
        for entry in self.entries:
            entry.parcel = self
            entry.rest()

    @property
    def name(self) -> str:
        first, last = self.entries[0].name, self.entries[-1].name
        return first if first == last else f"{first} to {last} ({len(self.entries)})"

    @property
    def size(self) -> int:
        return sum(entry.parameter.numel() for entry in self.entries)

    def announced(self, key: int, priority: int) -> None:
        """From here on, the core knows it."""
        self.priority = priority
        first = self.entries[0]
        several = len(self.entries) > 1
        reals = 2 if first.dtype.is_complex else 1
        if not self.size or self._tensor is not None:
            return
        shape = [self.size] if several else list(first.parameter.shape)
        if reals == 2:
            shape.append(reals)
        label = f"parameters {self.name}" if several else f"parameter '{self.name}'"
        codec = "none" if first.codec == AUTO else first.codec
        self._tensor = self._sender.tensor(
            key, self.name, first.dtype.to_real(), shape, label, codec
        )
        if several:
            self._make_memory()

    def travel_as(self, word: str) -> None:
        """From the next sum on, if that is the job's to choose."""
        first = self.entries[0]
        if first.codec == AUTO and self._tensor is not None:
            codec = codec_for(word, type_name(first.dtype), first.parameter.shape)
            self._tensor.set_compression(codec, 0.5)

    def _make_memory(self) -> None:
        """In which gradients travel that do not lie there already in the order that was claimed."""
        first = self.entries[0]
        self._together = torch.empty(self.size, dtype=first.dtype, device=first.device)
        begin = 0
        for entry in self.entries:
            shape = entry.parameter.shape
            self._places.append(self._together.as_strided(shape, entry.stride, begin))
            begin += entry.parameter.numel()

    def send(self, workers: int) -> None:
        """Starts the average over all workers: zeros for what has no gradient here."""
        self.settle()
        self.ready.clear()
        self.sent = True
        self._here = self._sender.here() or nullcontext
        for entry in self.entries:
            entry.take()
        self._has_idle = any(entry.total is None for entry in self.entries)
        with torch.no_grad():
            memory = self._gathered()
            memory.div_(workers)
        self._under_way = memory, workers
        if self._tensor is not None:
            self._work = self._sender.sum(self._tensor, in_memory(memory), self.priority)
            self._listen()
        else:  # they have no elements
            self._has_idle = False
            for entry in self.entries:
                entry.idle = False
                entry.give_back()

    def _gathered(self) -> Any:
        """The memory in which all of them are."""
        alone = self.entries[0]
        if self._together is None:
            if alone.total is not None and alone.total.stride() == alone.stride:
                if not alone.owns_total():
                    alone.make_total(alone.total)
                return alone.total
            self._make_memory()
        pairs = zip(self.entries, self._places)
        self._on_their_way = [pair for pair in pairs if pair[0].total is not None]
        if len(self._on_their_way) < len(self.entries):
            self._together.zero_()
        if self._on_their_way:
            places = [place for _, place in self._on_their_way]
            torch._foreach_copy_(places, [entry.total for entry, _ in self._on_their_way])
        return self._together

    @property
    def is_back(self) -> bool:
        """No sum is under way."""
        return self._work is None

    @property
    def arrived(self) -> bool:
        """Waiting for it would take no time."""
        if self._work is None:
            return True
        return self._work.over and not self._has_idle

    def wait(self) -> None:
        """Until the gradients are the averages."""
        if self._work is None:
            return
        with self._here(), outside_of_modes(), _in_no_mode():
            if self._work.over:
                self._work.wait()
            else:
                since = time.monotonic()
                self._work.wait()
                self._waited(time.monotonic() - since)
            self._make_average()
            self._take_out()
            self._work = None
            if not self.stepped:
                for entry in self.entries:
                    entry.give_back()
                self._rest()

    def _make_average(self) -> None:
        """Where workers have gone, the sum is that of fewer than it was divided by."""
        memory, divisor = self._under_way
        self._under_way = None, 1
        if _core.elastic() and self._tensor is not None:
            summed = self._tensor.workers()
            if summed != divisor:
                memory.mul_(divisor / summed)

    def _take_out(self) -> None:
        if not (self.stepped and self.lends):
            self._copy_out(self._on_their_way)
        for entry, place in zip(self.entries, self._places) if self._has_idle else ():
            if entry.idle:
                entry.idle = False
                if self._used(entry):
                    entry.make_total(place)
        self._has_idle = False

    def settle(self) -> None:
        """Gradients may be read, and written, from here on."""
        if self.stepped:
            self.finish()
        else:
            self.wait()

    def finish(self) -> None:
        """Parameters may be read, and written, from here on."""
        if self.stepped:
            self._update(self)

    def step_later(self) -> None:
        """The optimizer has been told of the gradients as they are now."""
        self.stepped = True
        if self._work is None:
            for entry in self.entries:
                entry.total = raw_grad(entry.parameter)
        self._listen()

    def for_update(self) -> list[Any]:
        """The sums, as the optimizer may have them: nobody else's use is to be heard."""
        self._rest()
        if len(self._on_their_way) == len(self.entries):
            return self._places
        where = dict(self._on_their_way)
        return [where.get(entry, entry.total) for entry in self.entries]

    def over(self) -> None:
        """The optimizer's step is done."""
        self.stepped = self.sent = False
        with _in_no_mode():
            self._copy_out([pair for pair in self._on_their_way if pair[0].kept])
            for entry in self.entries:
                entry.give_back()
                entry.total = None
        self._rest()

    def _copy_out(self, pairs: list[tuple[ParameterEntry, Any]]) -> None:
        """Of what is on its way, all that anybody is to see."""
        owned, places = [], []
        for entry, place in pairs:
            if entry.owns_total():
                owned.append(entry.total)
                places.append(place)
            else:
                entry.make_total(place)
        if owned:
            torch._foreach_copy_(owned, places)
        self._on_their_way = []

    def _listen(self) -> None:
        if self.at_rest:
            self.at_rest = False
            for entry in self.entries:
                entry.parameter.__class__ = entry.listening_class

    def _rest(self) -> None:
        if not self.at_rest:
            self.at_rest = True
            for entry in self.entries:
                entry.parameter.__class__ = entry.own_class
