"""Python's and NumPy's random numbers, as numbers and lists that any file can hold."""

from __future__ import annotations

import random
import sys
from typing import Any


def capture() -> dict[str, Any]:
    version, numbers, gauss = random.getstate()
    state: dict[str, Any] = {"python": [version, list(numbers), gauss]}
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        kind, keys, *rest = numpy.random.get_state()
        state["numpy"] = [kind, [int(key) for key in keys], *rest]
    return state


def restore(state: dict[str, Any]) -> None:
    version, numbers, gauss = state["python"]
    random.setstate((version, tuple(numbers), gauss))
    if "numpy" in state:
        import numpy

        kind, keys, *rest = state["numpy"]
        numpy.random.set_state((kind, numpy.array(keys, numpy.uint32), *rest))
