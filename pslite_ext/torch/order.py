"""In which order a forward uses the parameters: learned in the first one, the same on all workers.

What is used first is needed first. Packets need one order on all workers, so worker 0's counts.
What no operation of torch's has used in a forward may be used unheard in the next ones; a model in
training may compute otherwise than in evaluation, so that is learned for each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from pslite_ext.torch.entries import ParameterEntry
from pslite_ext.torch.parcels import Parcel, numbered
from pslite_ext.torch.values import take_from_worker_0


class OrderOfUse:
    """What was used in a forward so far."""

    def __init__(self) -> None:
        # By whether the model was training: ordered sets.
        self._seen: dict[bool, dict[ParameterEntry, None]] = {}
        self._now: dict[ParameterEntry, None] | None = None  # the one of the last forward

    def watch(self, training: bool, entries: Sequence[ParameterEntry]) -> None:
        """A forward begins."""
        if training not in self._seen:
            self._seen[training] = {}
            for entry in entries:
                entry.listen()
        self._now = self._seen[training]

    def note(self, entry: ParameterEntry) -> bool:
        """Whether that was a use in a forward."""
        if self._now is None:
            return False
        self._now[entry] = None
        return True

    def seen(self, place: Mapping[ParameterEntry, int]) -> list[tuple[bool, list[int]]]:
        """As words for a worker that comes."""
        return [(way, [place[e] for e in its if e in place]) for way, its in self._seen.items()]

    def saw(self, seen: Any, entries: Sequence[ParameterEntry]) -> None:
        """Another worker did, before this one came."""
        self._seen = {way: dict.fromkeys(entries[i] for i in its) for way, its in seen}

    def unseen(self, parcels: Sequence[Parcel], training: bool) -> list[Parcel]:
        """If parameters of these are used, then perhaps by something that is not heard."""
        seen = self._seen.get(training, {})
        return [p for p in parcels if any(entry not in seen for entry in p.entries)]

    def agree(
        self, entries: Sequence[ParameterEntry], model: int, name: str
    ) -> list[list[ParameterEntry]]:
        """What travels together, the most urgent first: on all workers as on worker 0, which all
        must reach."""
        number = {entry: index for index, entry in enumerate(entries)}
        seen = dict.fromkeys(entry for its in self._seen.values() for entry in its)
        own = [entry for entry in entries if entry not in seen]
        own += [entry for entry in seen if entry in number]
        rows = [[number[entry] for entry in own], numbered(own)]
        order = torch.tensor(rows, dtype=torch.int32, device="cpu")
        take_from_worker_0(model, name, [order])
        together: dict[int, list[ParameterEntry]] = {}
        for index, parcel in zip(*order.tolist()):
            together.setdefault(parcel, []).append(entries[index])
        return list(together.values())
