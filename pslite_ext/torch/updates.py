"""The optimizer's step, in parts: each few parameters as soon as their sums are in.

`step()` notes what the step is to be (learning rates change after it) and returns. A part is done
when a forward needs one of its parameters, or when somebody waits for all.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

import torch

from pslite_ext.torch.slots import Slot, raw_grad, set_raw_grad

# Parameters smaller than this together are updated together: each call of an optimizer costs.
PART_ELEMENTS = 1 << 16


def _noted(options: dict[str, Any]) -> dict[str, Any]:
    """A group's options as they are now; a learning rate may be a tensor that changes in place."""
    return {
        key: value.clone() if isinstance(value, torch.Tensor) else value
        for key, value in options.items()
        if key != "params"
    }


class Part:
    """A few parameters of one group."""

    def __init__(self, group: int) -> None:
        self.group = group
        self.slots: list[Slot] = []

    @property
    def arrived(self) -> bool:
        return all(slot.arrived for slot in self.slots)


def parts_of(slots: Iterable[Slot], group_of: Callable[[Slot], int]) -> list[Part]:
    """In the order of use, so that what is needed first waits for little else."""
    parts: list[Part] = []
    room = 0
    for slot in slots:
        group, size = group_of(slot), slot.parameter.numel()
        if not parts or parts[-1].group != group or size > room:
            parts.append(Part(group))
            room = PART_ELEMENTS
        parts[-1].slots.append(slot)
        room -= size
    return parts


class Updates:
    """What is still to be done of the last step."""

    def __init__(self, optimizer: Any, step: Callable[[Any], Any]) -> None:
        self._optimizer = optimizer
        self._step = step
        self._groups: list[dict[str, Any]] = []
        self._part_of: dict[Slot, Part] = {}
        self._left: dict[Part, None] = {}  # an ordered set

    def begin(self, parts: list[Part]) -> None:
        """What has no gradient on any worker is left as it is."""
        self._groups = [_noted(group) for group in self._optimizer.param_groups]
        self._left = dict.fromkeys(parts)
        self._part_of = {slot: part for part in parts for slot in part.slots}
        for slot in self._part_of:
            slot.stepped = True
        self._apply([part for part in parts if part.arrived])

    def wait_for(self, slots: Iterable[Slot]) -> None:
        """The parts of these, and what has arrived of those that will be needed next."""
        if not self._left:
            return
        needed = dict.fromkeys(part for slot in slots if (part := self._part_of.get(slot)))
        needed = {part: None for part in needed if part in self._left}
        if not needed:
            return
        self._wait(needed)
        self._apply([*needed, *self._arrived_first(needed)])

    def finish(self) -> None:
        while self._left:
            first = next(iter(self._left))
            self._wait([first])
            self._apply([first, *self._arrived_first({first: None})])

    def _arrived_first(self, but: dict[Part, None]) -> list[Part]:
        """Of those that are left, up to the first that has not arrived: one step for all of them
        costs less than one for each."""
        others = (part for part in self._left if part not in but)
        return list(itertools.takewhile(lambda part: part.arrived, others))

    @staticmethod
    def _wait(parts: Iterable[Part]) -> None:
        for part in parts:
            for slot in part.slots:
                slot.wait()

    def _apply(self, parts: list[Part]) -> None:
        self._wait(parts)
        later = []
        chosen: dict[int, list[Any]] = {}
        for part in parts:
            del self._left[part]
            for slot in part.slots:
                if slot.total is not None:
                    later.append((slot.parameter, raw_grad(slot.parameter)))
                    set_raw_grad(slot.parameter, slot.total)
                    chosen.setdefault(part.group, []).append(slot.parameter)
                slot.clear()
        if not chosen:
            return
        groups = self._optimizer.param_groups
        self._optimizer.param_groups = [
            {**self._groups[group], "params": parameters} for group, parameters in chosen.items()
        ]
        try:
            # Whatever mode the forward is in that needs it.
            with torch.inference_mode(False), torch.no_grad():
                self._step(self._optimizer)
        finally:
            self._optimizer.param_groups = groups
            for parameter, grad in later:
                set_raw_grad(parameter, grad)
