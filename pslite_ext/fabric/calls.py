"""What the script of a server, or of its replica, does in place of the job's rule.

Calls are made on the thread that sends and receives, which waits for them. Memory is lent: whoever
wants to keep what is in it copies it.
"""

from __future__ import annotations

import gc
import traceback
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pslite_ext.errors import InvalidArgumentError

Update = Callable[[Any, Any, int], object]
Request = Callable[[Any], Any]


@dataclass
class Calls:
    """`update`: changes a model by the sum of so many updates. `request`: of a model, what workers
    get."""

    update: Update | None = None
    request: Request | None = None
    shape: tuple[int, ...] = (-1,)

    def apply(self, model: memoryview, change: memoryview, updates: int) -> None:
        assert self.update is not None
        self._lend(self.update, [model, change], updates)

    def show(self, model: memoryview, shown: memoryview) -> None:
        self._lend(self._show, [model, shown])

    def _show(self, model: Any, shown: Any) -> None:
        assert self.request is not None
        values = np.asarray(self.request(model))
        if values.dtype != np.float32 or values.shape != model.shape:
            raise InvalidArgumentError(
                f"an array of {values.dtype} of shape {values.shape}, where the model is of "
                f"float32 and has {model.shape}"
            )
        shown[...] = values

    def _lend(self, call: Callable[..., object], memory: list[memoryview], *more: object) -> None:
        try:
            lent = self._called(call, memory, more)
        except Exception:
            traceback.print_exc()
            raise
        if _are_there(lent):
            gc.collect()  # a frame that an error has been caught in may hold them
        if _are_there(lent):
            raise InvalidArgumentError(
                "it has kept an array that is only lent to it: copy what is to be kept"
            )

    def _called(
        self, call: Callable[..., object], memory: list[memoryview], more: tuple[object, ...]
    ) -> list[weakref.ref[Any]]:
        """Arrays that are there until nobody has them, or a part of them, any more."""
        arrays = [np.frombuffer(part, np.float32) for part in memory]
        call(*(array.reshape(self.shape) for array in arrays), *more)
        return [weakref.ref(array) for array in arrays]


def _are_there(arrays: list[weakref.ref[Any]]) -> bool:
    return any(array() is not None for array in arrays)
