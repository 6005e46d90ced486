"""In which order a forward uses the parameters: learned in the first one, the same on all workers.

What is used first is needed first. Packets need one order on all workers, so worker 0's counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch

from pslite_ext.torch.entries import ParameterEntry
from pslite_ext.torch.parcels import numbered
from pslite_ext.torch.values import take_from_worker_0


class OrderOfUse:
    """What was used in a forward so far."""

    def __init__(self) -> None:
        self._seen: dict[ParameterEntry, None] = {}  # an ordered set
        self._watching = False

    def watch(self) -> None:
        """A forward begins."""
        self._watching = True

    def note(self, entry: ParameterEntry) -> bool:
        """Whether that was a use in a forward."""
        if self._watching:
            self._seen[entry] = None
        return self._watching

    def seen(self) -> list[ParameterEntry]:
        return list(self._seen)

    def saw(self, entries: Iterable[ParameterEntry]) -> None:
        """Another worker did, before this one came."""
        self._seen = dict.fromkeys(entries)

    def unseen(self, entries: Sequence[ParameterEntry]) -> list[ParameterEntry]:
        """If they are used, then by something that is not heard."""
        return [entry for entry in entries if entry not in self._seen]

    def agree(
        self, entries: Sequence[ParameterEntry], model: int, name: str
    ) -> list[list[ParameterEntry]]:
        """What travels together, the most urgent first: on all workers as on worker 0, which all
        must reach."""
        number = {entry: index for index, entry in enumerate(entries)}
        own = [*self.unseen(entries), *(entry for entry in self._seen if entry in number)]
        rows = [[number[entry] for entry in own], numbered(own)]
        order = torch.tensor(rows, dtype=torch.int32, device="cpu")
        take_from_worker_0(model, name, [order])
        together: dict[int, list[ParameterEntry]] = {}
        for index, parcel in zip(*order.tolist()):
            together.setdefault(parcel, []).append(entries[index])
        return list(together.values())
