"""What travels as one tensor: a large parameter's gradient, or those of small neighbours together.

Each tensor on its way costs time, however small it is. Small neighbours in the order of use are
needed, and appear, at about the same time, so they lose little by waiting for each other. They
travel in memory of the parcel's own, from which an optimizer that keeps no gradient reads their
sums; a gradient that travels alone is summed where it is, if its memory is in the order that
workers have agreed on.

A parcel is also a part of the optimizer's step: its parameters are updated together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from pslite_ext import _core
from pslite_ext.errors import PsliteError
from pslite_ext.torch.layouts import in_memory
from pslite_ext.torch.slots import Slot, raw_grad, unheard
from pslite_ext.torch.staging import Way, Work

# Parameters that are smaller than this together share a parcel.
PARCEL_ELEMENTS = 1 << 16


def numbered(slots: Iterable[Slot]) -> list[int]:
    """For each slot, in the order of use, the number of its parcel."""
    numbers: list[int] = []
    kind, room, number = None, 0, -1
    for slot in slots:
        # One that is frozen is sent at the end of the backward: the others are not to wait for it.
        own = (slot.dtype, slot.device, slot.parameter.requires_grad)
        size = slot.parameter.numel()
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
        slots: Sequence[Slot],
        way: Way,
        used: Callable[[Slot], bool],
        update: Callable[[Parcel], None],
        lends: bool,
    ) -> None:
        self.slots = slots
        self.ready: set[Slot] = set()  # whose gradients are complete, and have not been sent
        self.sent = False  # in the backward under way
        self.stepped = False  # the optimizer has been told; the update is still to come
        self.at_rest = True  # nothing is to be waited for
        self.lends = lends
        self.priority = 0
        self._way, self._used, self._update = way, used, update
        self._tensor: _core.Tensor | None = None
        self._work: Work | None = None
        self._together: Any = None  # memory of its own
        self._places: list[Any] = []  # each one's in it, in the order that was claimed
        self._on_their_way: list[tuple[Slot, Any]] = []  # whose sums are in these places
        self._has_idle = False
        for slot in slots:
            slot.parcel = self
            slot.rest()

    @property
    def name(self) -> str:
        first, last = self.slots[0].name, self.slots[-1].name
        return first if first == last else f"{first} to {last} ({len(self.slots)})"

    @property
    def size(self) -> int:
        return sum(slot.parameter.numel() for slot in self.slots)

    def announced(self, key: int, priority: int) -> None:
        """From here on, the core knows it."""
        self.priority = priority
        first = self.slots[0]
        several = len(self.slots) > 1
        reals = 2 if first.dtype.is_complex else 1
        if not self.size:
            return
        kind = str(first.dtype.to_real()).removeprefix("torch.")
        shape = [self.size] if several else list(first.parameter.shape)
        if reals == 2:
            shape.append(reals)
        label = f"parameters {self.name}" if several else f"parameter '{self.name}'"
        self._tensor = _core.Tensor(key, self.name, kind, shape, label=label)
        if several:
            self._make_memory()

    def _make_memory(self) -> None:
        """In which gradients travel that do not lie there already in the order that was claimed."""
        first = self.slots[0]
        self._together = torch.empty(self.size, dtype=first.dtype, device=first.device)
        begin = 0
        for slot in self.slots:
            shape = slot.parameter.shape
            self._places.append(self._together.as_strided(shape, slot.stride, begin))
            begin += slot.parameter.numel()

    def send(self, workers: int) -> None:
        """Starts the average over all workers: zeros for what has no gradient here."""
        self.settle()
        self.ready.clear()
        self.sent = True
        for slot in self.slots:
            slot.take()
        self._has_idle = any(slot.total is None for slot in self.slots)
        with torch.no_grad():
            memory = self._gathered()
            memory.div_(workers)
        if self._tensor is not None:
            self._work = self._way.sum(self._tensor, in_memory(memory), self.priority)
            self._listen()
        else:  # they have no elements
            self._has_idle = False
            for slot in self.slots:
                slot.idle = False
                slot.give_back()

    def _gathered(self) -> Any:
        """The memory in which all of them are."""
        alone = self.slots[0]
        if self._together is None:
            if alone.total is not None and alone.total.stride() == alone.stride:
                return alone.total
            self._make_memory()
        pairs = zip(self.slots, self._places)
        self._on_their_way = [pair for pair in pairs if pair[0].total is not None]
        if len(self._on_their_way) < len(self.slots):
            self._together.zero_()
        if self._on_their_way:
            places = [place for _, place in self._on_their_way]
            torch._foreach_copy_(places, [slot.total for slot, _ in self._on_their_way])
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
        try:
            self._work.wait()
        except PsliteError as error:
            # What workers disagree on, before what came of that.
            assert self._tensor is not None
            self._tensor.check()
            raise error from None
        with _in_no_mode():
            self._take_out()
            self._work = None
            if not self.stepped:
                for slot in self.slots:
                    slot.give_back()
                self._rest()

    def _take_out(self) -> None:
        if not (self.stepped and self.lends):
            self._copy_out(self._on_their_way)
        for slot, place in zip(self.slots, self._places) if self._has_idle else ():
            if slot.idle:
                slot.idle = False
                if self._used(slot):
                    slot.total = torch.empty_like(slot.parameter, requires_grad=False).copy_(place)
        self._has_idle = False

    def settle(self) -> None:
        """Gradients may be read, and written, from here on."""
        self.wait()
        self.finish()

    def finish(self) -> None:
        """Parameters may be read, and written, from here on."""
        if self.stepped:
            self._update(self)

    def step_later(self) -> None:
        """The optimizer has been told of the gradients as they are now."""
        self.stepped = True
        if self._work is None:
            for slot in self.slots:
                slot.total = raw_grad(slot.parameter)
        self._listen()

    def for_update(self) -> list[Any]:
        """The sums, as the optimizer may have them: nobody else's use is to be heard."""
        self._rest()
        if len(self._on_their_way) == len(self.slots):
            return self._places
        where = dict(self._on_their_way)
        return [where.get(slot, slot.total) for slot in self.slots]

    def over(self) -> None:
        """The optimizer's step is done."""
        self.stepped = self.sent = False
        with _in_no_mode():
            self._copy_out([pair for pair in self._on_their_way if pair[0].kept])
            for slot in self.slots:
                slot.give_back()
                slot.total = None
        self._rest()

    def _copy_out(self, pairs: list[tuple[Slot, Any]]) -> None:
        """Of what is on its way, all that anybody is to see."""
        if pairs:
            places = [place for _, place in pairs]
            torch._foreach_copy_([slot.total for slot, _ in pairs], places)
        self._on_their_way = []

    def _listen(self) -> None:
        if self.at_rest:
            self.at_rest = False
            for slot in self.slots:
                slot.parameter.__class__ = slot.listening_class

    def _rest(self) -> None:
        if not self.at_rest:
            self.at_rest = True
            for slot in self.slots:
                slot.parameter.__class__ = slot.own_class
