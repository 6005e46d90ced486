"""In which order a forward uses the parameters: learned in the first one, the same on all workers.

What is used first is needed first. Packets need one order on all workers, so worker 0's counts.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from pslite_ext.torch.parcels import numbered
from pslite_ext.torch.slots import Slot
from pslite_ext.torch.values import take_from_worker_0


class OrderOfUse:
    """What was used in a forward so far."""

    def __init__(self) -> None:
        self._seen: dict[Slot, None] = {}  # an ordered set
        self._watching = False

    def watch(self) -> None:
        """A forward begins."""
        self._watching = True

    def note(self, slot: Slot) -> bool:
        """Whether that was a use in a forward."""
        if self._watching:
            self._seen[slot] = None
        return self._watching

    def unseen(self, slots: Sequence[Slot]) -> list[Slot]:
        """If they are used, then by something that is not heard."""
        return [slot for slot in slots if slot not in self._seen]

    def agree(self, slots: Sequence[Slot], model: int, name: str) -> list[list[Slot]]:
        """What travels together, the most urgent first: on all workers as on worker 0, which all
        must reach."""
        number = {slot: index for index, slot in enumerate(slots)}
        own = [*self.unseen(slots), *(slot for slot in self._seen if slot in number)]
        order = torch.tensor([[number[slot] for slot in own], numbered(own)], dtype=torch.int32)
        take_from_worker_0(model, name, [order])
        together: dict[int, list[Slot]] = {}
        for index, parcel in zip(*order.tolist()):
            together.setdefault(parcel, []).append(slots[index])
        return list(together.values())
