"""Keys: from what a script passes to (key, arrays) pairs, and to the 64-bit keys on the wire."""

from __future__ import annotations

import hashlib
import numbers
from collections.abc import Iterable
from typing import Any, Union

import numpy as np
from mxnet.ndarray import NDArray
from mxnet.ndarray.sparse import RowSparseNDArray

from mxnet_plugins import arguments
from mxnet_plugins.arguments import encodable, whole
from mxnet_plugins.errors import InvalidArgumentError, WrongTypeError
from pslite_ext import _core

Key = Union[int, str]


def wire_key(store: int, key: Key, part: str = "dense") -> int:
    """64 bits that are the same on all workers and unlike those of any other tensor of the job."""
    kind = "text" if isinstance(key, str) else "number"
    digest = hashlib.blake2b(f"{store}/{kind}/{part}/{key}".encode(), digest_size=8)
    return int.from_bytes(digest.digest(), "little")


def label(key: Key, name: str) -> str:
    """What messages call a tensor."""
    return f"tensor {name!r}" + ("" if name == key else f" (key {key!r})")


def _one_key(key: Any) -> Key:
    if isinstance(key, str):
        return encodable("a key", key)
    if isinstance(key, numbers.Integral) and not isinstance(key, bool):
        return int(key)
    raise WrongTypeError(f"a key is an int or a str, not {type(key).__name__}: {key!r}")


def checked(key: Key, priority: Any) -> int:
    """The priority, which has 32 bits on the wire."""
    return whole(f"key {key!r}: priority", priority)


def announced(tensors: Any) -> list[tuple[Key, str, int]]:
    """(key, name, priority) of each; (key, name, bytes, priority) will do."""
    known = []
    if not isinstance(tensors, Iterable):
        raise WrongTypeError(
            f"announce needs a list of (key, name, priority), not {type(tensors).__name__}"
        )
    for tensor in tensors:
        if not isinstance(tensor, (tuple, list)) or len(tensor) not in (3, 4):
            raise WrongTypeError(f"announce: (key, name, priority) is needed, not {tensor!r}")
        key, name, *_, priority = tensor
        key = _one_key(key)
        name = encodable(f"key {key!r}: its name", name)
        known.append((key, name, checked(key, priority)))
    return known


def _arrays(key: Key, value: Any) -> list[NDArray]:
    if not isinstance(value, (NDArray, Iterable)):
        raise WrongTypeError(f"key {key!r}: an NDArray is needed, not {type(value).__name__}")
    arrays = [value] if isinstance(value, NDArray) else list(value)
    if not arrays:
        raise InvalidArgumentError(f"key {key!r} has no array")
    for array in arrays:
        if not isinstance(array, NDArray):
            raise WrongTypeError(f"key {key!r}: an NDArray is needed, not {type(array).__name__}")
    # An mx.np array's operators refuse plain arrays and the other way round: plain ones from here.
    return [array.as_nd_ndarray() for array in arrays]


def dtype_name(array: NDArray) -> str:
    name = np.dtype(array.dtype).name
    # NumPy has no bfloat16: MXNet 1.9 shows such arrays as a two-byte void or as an odd integer.
    return name if not name.startswith("void") else "bfloat16"


def check_shapes(key: Key, shape: tuple[int, ...], arrays: list[NDArray]) -> None:
    for array in arrays:
        if array.shape != shape:
            raise InvalidArgumentError(
                f"key {key!r} has shape {shape}, but the array has {array.shape}"
            )


def check_rows(key: Key, array: NDArray) -> None:
    """MXNet would read and write where a row that is not there would be."""
    if isinstance(array, RowSparseNDArray):
        arguments.rows(key, array.indices.asnumpy(), array.shape[0])


def pairs(keys: Any, values: Any) -> list[tuple[Key, list[NDArray]]]:
    """Groups keys and arrays: one key or many, one array or many for each, nested or repeated."""
    if not isinstance(keys, (list, tuple)):
        key = _one_key(keys)
        return [(key, _arrays(key, values))]
    try:  # a list, a dictionary's values, an array whose rows they are
        count, each = len(values), iter(values)
    except TypeError:
        text = f"{len(keys)} keys need a list of values, not {type(values).__name__}"
        raise WrongTypeError(text) from None
    if len(keys) != count:
        raise InvalidArgumentError(f"{len(keys)} keys, but {count} values")
    grouped: dict[Key, list[NDArray]] = {}
    for one, value in zip(keys, each):
        key = _one_key(one)
        grouped.setdefault(key, []).extend(_arrays(key, value))
    if len({isinstance(key, str) for key in grouped}) > 1:
        raise InvalidArgumentError("inconsistent types of keys: some are int and some are str")
    return list(grouped.items())


def single(keys: Any, values: Any) -> list[tuple[Key, NDArray]]:
    """Keys and the one array of each, as they come into a store."""
    found = []
    for key, arrays in pairs(keys, values):
        if len(arrays) > 1:
            text = f"key {key!r} has {len(arrays)} first values: init each key once, with one array"
            raise InvalidArgumentError(text)
        if arrays[0].stype not in ("default", "row_sparse"):
            raise InvalidArgumentError(
                f"key {key!r} has a {arrays[0].stype} array: a store has dense and row_sparse "
                "ones; convert it with tostype('default')"
            )
        kind = dtype_name(arrays[0])
        if not _core.element_bytes(kind):
            raise InvalidArgumentError(
                f"key {key!r} has a {kind} array, which cannot be summed: convert it with "
                "astype('float32')"
            )
        check_rows(key, arrays[0])
        found.append((key, arrays[0]))
    return found
