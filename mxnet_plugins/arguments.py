"""What a script passes to a store, checked before anything is done with it.

Each error says what is wrong with what, and what to give instead. Keys and arrays: keys.py.
"""

from __future__ import annotations

import math
import operator
import os
from typing import Any

import numpy as np

from mxnet_plugins.errors import InvalidArgumentError, WrongTypeError
from pslite_ext._core import compressions

# What MXNet's updaters ask of an optimizer; a class of optimizers lacks the first.
_OPTIMIZER = ("aggregate_num", "create_state_multi_precision", "update_multi_precision")


def whole(what: str, value: Any) -> int:
    """An int of 32 bits."""
    try:
        number = operator.index(value)
    except TypeError:
        text = f"{what} is an int, not {type(value).__name__}: {value!r}"
        raise WrongTypeError(text) from None
    if not -(2**31) <= number < 2**31:
        raise InvalidArgumentError(
            f"{what} {number} is not within {-(2**31)} and {2**31 - 1}: give one that is"
        )
    return number


def encodable(what: str, value: Any) -> str:
    """A str that can be sent."""
    if not isinstance(value, str):
        raise WrongTypeError(f"{what} is a str, not {type(value).__name__}: {value!r}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        text = f"{what} {value!r} cannot be sent: {error.reason}: give one that is valid Unicode"
        raise InvalidArgumentError(text) from None
    return value


def rows(key: Any, numbers: Any, count: int) -> None:
    """Of a row_sparse array, or wanted of one that has `count` rows."""
    outside = numbers[(numbers < 0) | (numbers >= count)]
    if len(outside):
        raise InvalidArgumentError(f"key {key!r} has {count} rows, so no row {outside[0]}")


def _is_optimizer(value: Any) -> bool:
    return all(hasattr(value, name) for name in _OPTIMIZER)


def optimizer(value: Any) -> Any:
    if not _is_optimizer(value):
        raise WrongTypeError(
            f"set_optimizer needs an optimizer, not {type(value).__name__}: {value!r}: give one "
            "such as mx.optimizer.create('sgd')"
        )
    return value


def updater(value: Any) -> Any:
    if value is not None and not callable(value):
        raise WrongTypeError(
            f"an updater is a function (key, gradient, weight), or None, not "
            f"{type(value).__name__}: {value!r}"
        )
    return value


def file_name(value: Any) -> str | bytes:
    """Not a number: `open` would take that for a file that is open already."""
    try:
        name: str | bytes = os.fspath(value)
    except TypeError:
        text = f"the name of a file is needed, not {type(value).__name__}: {value!r}"
        raise WrongTypeError(text) from None
    return name


def load_states(updater: Any, states: bytes, source: object) -> None:
    """Gives `updater` the states; if they are none, it stays as it was."""
    before = vars(updater).copy()
    try:
        updater.set_states(states)
        loaded = getattr(updater, "states", {})
        if not isinstance(loaded, dict) or not all(isinstance(k, (int, str)) for k in loaded):
            raise TypeError(f"not a dict of states by key, but {type(loaded).__name__}")
        if hasattr(updater, "optimizer") and not _is_optimizer(updater.optimizer):
            raise TypeError(f"not an optimizer, but {type(updater.optimizer).__name__}")
    except Exception as error:  # a pickle can raise anything
        vars(updater).clear()
        vars(updater).update(before)
        raise InvalidArgumentError(
            f"{source!r} holds no optimizer states ({type(error).__name__}: {error}): give a file "
            "that save_optimizer_states has written; the states are left as they were"
        ) from None


def compression(given: Any) -> tuple[str, float]:
    """The kind and the threshold."""
    if not isinstance(given, dict):
        raise WrongTypeError(
            "gradient compression: a dict such as {'type': '2bit', 'threshold': 0.5} is "
            f"needed, not {type(given).__name__}"
        )
    unknown = set(given) - {"type", "threshold"}
    kind = str(given.get("type", ""))
    kinds = ("none", *compressions())
    if unknown or kind not in kinds:
        raise InvalidArgumentError(
            f"gradient compression {given!r}: 'type' is one of "
            f"{', '.join(kinds)}, and beside it there is only 'threshold'"
        )
    named = given.get("threshold", 0.5)
    try:
        threshold = float(named)
    except (TypeError, ValueError, OverflowError):
        text = f"gradient compression: threshold {named!r} is not a number: give one above 0"
        raise InvalidArgumentError(text) from None
    with np.errstate(all="ignore"):
        as_sent = float(np.float32(threshold))
    if kind == "2bit" and not as_sent > 0:
        raise InvalidArgumentError(f"gradient compression: threshold {threshold} is not > 0")
    if not math.isfinite(as_sent):
        raise InvalidArgumentError(
            f"gradient compression: threshold {threshold} is not a finite float32: "
            "give a smaller one"
        )
    return kind, threshold
