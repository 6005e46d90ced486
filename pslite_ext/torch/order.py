"""In which order a forward uses the parameters: learned in the first one, the same on all workers.

What is used first is needed first. Packets need one order on all workers, so worker 0's counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from pslite_ext.torch.slots import Slot
from pslite_ext.torch.values import take_from_worker_0


def _nothing(*_args: Any) -> None:
    """The hook of a copy of a module."""


def _hook_of_a_copy() -> Callable[..., None]:
    return _nothing


class BeforeForward:
    """A module's hook. A copy of the module, or a pickled one, waits for nobody.

    No compiler looks into it: what it waits for is outside of any graph.
    """

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call

    @torch.compiler.disable  # type: ignore[misc]
    def __call__(self, *_args: Any) -> None:
        self._call()

    def __reduce__(self) -> tuple[Any, ...]:
        return _hook_of_a_copy, ()


class OrderOfUse:
    """What was used in a forward so far, until `agree` closes the list."""

    def __init__(self, slots: Sequence[Slot]) -> None:
        self._slots = slots
        self._seen: dict[Slot, None] = {}  # an ordered set
        self.agreed = False

    def note(self, slots: Sequence[Slot]) -> None:
        if not self.agreed:
            self._seen.update(dict.fromkeys(slots))

    @property
    def unseen(self) -> list[Slot]:
        """Whose module was not called: if they are used, some other module reaches for them."""
        return [slot for slot in self._slots if slot not in self._seen]

    def agree(self, model: int) -> list[Slot]:
        """The most urgent first, on all workers as on worker 0, which all must reach."""
        number = {slot: index for index, slot in enumerate(self._slots)}
        own = [number[slot] for slot in (*self.unseen, *self._seen)]
        order = torch.tensor(own, dtype=torch.int32)
        take_from_worker_0(model, "order", [order])
        self.agreed = True
        return [self._slots[index] for index in order.tolist()]
