"""The optimizer's step, in parts: each parcel's parameters as soon as their sums are in.

`step()` notes what the step is to be (learning rates change after it) and returns. A part is done
when somebody needs one of its parameters, or waits for all. If a part fails, all that comes later
fails of that: weights that lack an update are not to be trained further, or saved, unnoticed.
"""

from __future__ import annotations

import itertools
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from pslite_ext.torch.entries import ParameterEntry, raw_grad, set_raw_grad
from pslite_ext.torch.modes import in_dispatch_mode, outside_of_modes
from pslite_ext.torch.parcels import Parcel
from pslite_ext.torch.staging import Place, Sender


class UpdateFailedError(RuntimeError):
    """Weights lack an update."""


def _noted(options: dict[str, Any]) -> dict[str, Any]:
    """A group's options as they are now; a learning rate may be a tensor that changes in place."""
    return {
        key: value.clone() if isinstance(value, torch.Tensor) else value
        for key, value in options.items()
        if key != "params"
    }


@contextmanager
def _outside_of_forward(kinds: Iterable[str]) -> Iterator[None]:
    """A step is made as `step()` itself would, whatever mode the code is in that needs it."""
    with torch.inference_mode(False), torch.no_grad(), ExitStack() as modes:
        for kind in kinds:
            modes.enter_context(torch.autocast(kind, enabled=False))
        yield


class Updates:
    """What is still to be done of the last step.

    One thread at a time: whichever needs a parameter does the update. The sums that it waits for
    come without any other of the script's threads.
    """

    def __init__(
        self, optimizer: Any, step: Callable[[Any], Any], senders: dict[Any, Sender]
    ) -> None:
        self._optimizer = optimizer
        self._senders = senders
        self._places: list[Place] = []  # where the step was made, on each device
        self._own_class = type(optimizer)
        self._step = step
        self._groups: list[dict[str, Any]] = []
        self._group_of: dict[ParameterEntry, int] = {}
        self._left: dict[Parcel, None] = {}  # an ordered set
        self._failure: UpdateFailedError | None = None
        self._lock = threading.RLock()  # the optimizer's own code may use parameters

    def begin(self, parcels: Sequence[Parcel], group_of: dict[ParameterEntry, int]) -> None:
        """What has no gradient on any worker is left as it is."""
        with self._lock:
            self._groups = [_noted(group) for group in self._optimizer.param_groups]
            self._group_of = group_of
            here = (sender.here() for sender in self._senders.values())
            self._places = [*filter(None, here)]
            self._left = dict.fromkeys(parcels)
            for parcel in parcels:
                parcel.step_later()
            # A mode that the step is made in sees all of it.
            at_once = in_dispatch_mode()
            self._apply([parcel for parcel in parcels if at_once or parcel.is_back])

    def wait_for(self, parcels: Iterable[Parcel]) -> None:
        """These, and what has arrived of those that will be needed next."""
        with self._lock:
            self.check()
            needed = dict.fromkeys(parcel for parcel in parcels if parcel in self._left)
            if needed:
                self._make(needed)

    def finish(self) -> None:
        with self._lock:
            self.check()
            while self._left:
                self._make({next(iter(self._left)): None})

    def check(self) -> None:
        """Raises the failure of an earlier update."""
        if self._failure is not None:
            raise self._failure

    def _make(self, needed: dict[Parcel, None]) -> None:
        with outside_of_modes(), self._where_the_step_was():
            self._wait(needed)
            self._apply([*needed, *self._arrived_first(needed)])

    def _arrived_first(self, but: dict[Parcel, None]) -> list[Parcel]:
        """Of those that are left, up to the first that has not arrived: one step for all of them
        costs less than one for each."""
        others = (parcel for parcel in self._left if parcel not in but)
        return list(itertools.takewhile(lambda parcel: parcel.arrived, others))

    @staticmethod
    def _wait(parcels: Iterable[Parcel]) -> None:
        for parcel in parcels:
            parcel.wait()

    def _where_the_step_was(self) -> ExitStack:
        places = ExitStack()
        for place in self._places:
            places.enter_context(place())
        return places

    def _apply(self, parcels: list[Parcel]) -> None:
        self._wait(parcels)
        try:
            self._step_on_sums(parcels)
        except BaseException as error:
            names = ", ".join(f"'{parcel.name}'" for parcel in parcels)
            self._failure = UpdateFailedError(
                f"the update of {names} failed and is lost ({type(error).__name__}: {error}): "
                "go on from a checkpoint"
            )
            raise

    def _step_on_sums(self, parcels: list[Parcel]) -> None:
        """With these in `.grad`; what was there is put back, whatever happens."""
        meanwhile = []  # what `.grad` was
        chosen: dict[int, list[Any]] = defaultdict(list)
        try:
            for parcel in parcels:
                del self._left[parcel]
                for entry, summed in zip(parcel.entries, parcel.for_update()):
                    if summed is not None:
                        parameter = entry.parameter
                        grad = raw_grad(parameter)
                        if grad is not summed:
                            meanwhile.append((parameter, grad))
                            set_raw_grad(parameter, summed)
                        chosen[self._group_of[entry]].append(parameter)
            if chosen:
                self._step_on(chosen)
        finally:
            for parameter, grad in meanwhile:
                set_raw_grad(parameter, grad)
            for parcel in parcels:
                parcel.over()

    def _step_on(self, chosen: dict[int, list[Any]]) -> None:
        groups = self._optimizer.param_groups
        self._optimizer.param_groups = [
            {**self._groups[group], "params": parameters} for group, parameters in chosen.items()
        ]
        kinds = {parameter.device.type for some in chosen.values() for parameter in some}
        wrapped_class = type(self._optimizer)
        self._optimizer.__class__ = self._own_class  # its own code waits for nothing
        try:
            with _outside_of_forward(kinds):
                self._step(self._optimizer)
        finally:
            self._optimizer.__class__ = wrapped_class
            self._optimizer.param_groups = groups
