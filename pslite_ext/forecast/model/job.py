"""What is predicted: one training job as a list of layers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from pslite_ext.wire_words import ELEMENT_BYTES, PLAIN, WORDS, coded_bytes

Array = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
BYTES_MAX = 1e18  # of a layer: an int64 holds it


class ModelError(ValueError):
    """A question the model cannot answer: a wrong job, bandwidth, policy or option."""


def number(what: str, value: object, *, above_zero: bool = False, most: float = math.inf) -> float:
    """`value` as a finite float >= 0 (or > 0) and <= `most`, or a ModelError that names it."""
    bound = "> 0" if above_zero else ">= 0"
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        raise ModelError(f"{what} must be a number {bound}, not {value!r}")
    try:
        result = float(value)
    except OverflowError:  # an int
        result = math.inf
    if not math.isfinite(result) or result < 0 or (above_zero and result == 0):
        raise ModelError(f"{what} must be a finite number {bound}, not {result:g}")
    if result > most:
        raise ModelError(f"{what} must be at most {most:g}, not {result:g}")
    return result


@dataclass(frozen=True)
class Layer:
    """One tensor: its size, and the seconds its computation takes in an iteration."""

    name: str
    bytes: float
    bp_s: float
    fp_s: float
    upd_s: float = 0.0

    def __post_init__(self) -> None:
        number(f"layer '{self.name}': bytes", self.bytes, most=BYTES_MAX)
        for field in ("bp_s", "fp_s", "upd_s"):
            number(f"layer '{self.name}': {field}", getattr(self, field))


@dataclass(frozen=True)
class Job:
    """Layers from the input (index 0, layer 1 in the formulas) to the output."""

    layers: tuple[Layer, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", tuple(self.layers))
        if not self.layers:
            raise ModelError("a job needs at least one layer")
        for layer in self.layers:
            if not isinstance(layer, Layer):
                raise ModelError(f"a job is made of layers, not of {layer!r}")
        if not math.isfinite(sum(float(x.bp_s) + x.fp_s + x.upd_s for x in self.layers)):
            raise ModelError("a job computes for longer than can be counted: give smaller times")

    def __len__(self) -> int:
        return len(self.layers)

    def column(self, field: str) -> Array:
        return np.array([getattr(layer, field) for layer in self.layers], dtype=np.float64)

    @cached_property
    def bytes(self) -> Array:
        return self.column("bytes")

    @cached_property
    def bp_end(self) -> Array:
        """When each layer's gradient is ready: backward runs from the last layer to the first."""
        ends: Array = np.cumsum(self.column("bp_s")[::-1])[::-1]
        return ends

    @cached_property
    def after_pull_s(self) -> Array:
        """What a layer still computes once its sum is in: the update and the forward pass."""
        return self.column("upd_s") + self.column("fp_s")

    @cached_property
    def compute_s(self) -> float:
        return float(self.bp_end[0] + self.after_pull_s.sum())

    def on_wire(self, word: str) -> Job:
        """With float32 gradients sent as the word says (pslite_ext/wire_words.py)."""
        if word not in WORDS:
            raise ModelError(f"wire must be one of {', '.join(WORDS)}, not {word!r}")
        sent = (coded_bytes(word, round(layer.bytes / ELEMENT_BYTES)) for layer in self.layers)
        made = (replace(layer, bytes=float(size)) for layer, size in zip(self.layers, sent))
        return self if word == PLAIN else Job(tuple(made))

    def in_steps(self, steps: int) -> Job:
        """Gradients appear in groups: those of a group together, with its last.

        That is what frameworks do that copy or aggregate several gradients at a time.
        """
        if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
            raise ModelError(f"steps must be a whole number >= 1, not {steps!r}")
        steps = min(steps, len(self))
        made: list[Layer] = []
        for step in range(steps):
            first, end = (round(edge * len(self) / steps) for edge in (step, step + 1))
            group = self.layers[first:end]
            together = sum(layer.bp_s for layer in group)
            made += [replace(layer, bp_s=0.0) for layer in group[:-1]]
            made.append(replace(group[-1], bp_s=together))
        return Job(tuple(made))
