"""What a script passes to a store: each mistake is an error of ours that says what is wrong."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mxnet as mx
import numpy as np
import pytest

from mxnet_plugins import arguments, keys
from pslite_ext.errors import InvalidArgumentError

ONE = mx.nd.ones((2,))


def compression(threshold: Any, kind: str = "2bit") -> Callable[[], Any]:
    return lambda: arguments.compression({"type": kind, "threshold": threshold})


@pytest.mark.parametrize(
    ("call", "kind", "says"),
    [
        (lambda: arguments.whole("a head", "x"), TypeError, "a head is an int, not str: 'x'"),
        (lambda: arguments.whole("a head", None), TypeError, "a head is an int, not NoneType"),
        (lambda: arguments.whole("a head", 1.5), TypeError, "a head is an int, not float: 1.5"),
        (lambda: arguments.whole("a head", 2**40), ValueError, "a head 1099511627776 is not with"),
        (lambda: arguments.encodable("a body", None), TypeError, "a body is a str, not NoneType"),
        (lambda: arguments.encodable("a body", "\udc80"), ValueError, "a body '\\udc80' cannot be"),
        (lambda: keys.pairs("\udc80", ONE), ValueError, "a key '\\udc80' cannot be sent"),
        (lambda: keys.checked("k", "x"), TypeError, "key 'k': priority is an int, not str"),
        (lambda: keys.checked("k", None), TypeError, "key 'k': priority is an int, not NoneType"),
        (lambda: keys.checked("k", 2**31), ValueError, "key 'k': priority 2147483648 is not"),
        (lambda: keys.announced(5), TypeError, "a list of (key, name, priority), not int"),
        (lambda: keys.announced([("k", "n")]), TypeError, "is needed, not ('k', 'n')"),
        (lambda: keys.announced([("k", "n", 1, 2, 3)]), TypeError, "is needed, not ('k', 'n', 1,"),
        (lambda: keys.announced(["kn0"]), TypeError, "is needed, not 'kn0'"),
        (lambda: keys.announced([("k", 5, 0)]), TypeError, "key 'k': its name is a str, not int"),
        (lambda: keys.announced([(1.5, "n", 0)]), TypeError, "a key is an int or a str"),
        (lambda: keys.single(["k", "k"], [ONE, ONE]), ValueError, "key 'k' has 2 first values"),
        (lambda: keys.single("k", [ONE, ONE]), ValueError, "key 'k' has 2 first values"),
        (
            lambda: keys.single("k", mx.nd.ones((2, 2)).tostype("csr")),
            ValueError,
            "key 'k' has a csr array",
        ),
        (lambda: arguments.optimizer(None), TypeError, "an optimizer, not NoneType: None"),
        (lambda: arguments.optimizer("sgd"), TypeError, "mx.optimizer.create('sgd')"),
        (lambda: arguments.optimizer(mx.optimizer.SGD), TypeError, "an optimizer, not type"),
        (lambda: arguments.updater(5), TypeError, "or None, not int: 5"),
        (lambda: arguments.file_name(3), TypeError, "the name of a file is needed, not int: 3"),
        (compression(float("inf")), ValueError, "threshold inf is not a finite float32"),
        (compression(1e300), ValueError, "threshold 1e+300 is not a finite float32"),
        (compression(float("nan"), "1bit"), ValueError, "threshold nan is not a finite float32"),
        (compression(1e-300), ValueError, "threshold 1e-300 is not > 0"),
        (compression(float("nan")), ValueError, "threshold nan is not > 0"),
    ],
)
def test_mistakes_are_named(call: Callable[[], Any], kind: type[Exception], says: str) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        call()
    assert isinstance(raised.value, mx.MXNetError)
    assert isinstance(raised.value, kind)
    assert says in str(raised.value)


def test_what_is_right() -> None:
    assert [arguments.whole("", n) for n in (-(2**31), np.int64(7), True)] == [-(2**31), 7, 1]
    assert arguments.encodable("", "naïve") == "naïve"
    assert keys.announced([("k", "n", -1), (3, "m", 48, 2)]) == [("k", "n", -1), (3, "m", 2)]
    rows = mx.nd.ones((2, 2)).tostype("row_sparse")
    assert [key for key, _ in keys.single(["a", "b"], [[ONE], rows])] == ["a", "b"]
    sgd = mx.optimizer.create("sgd")
    assert arguments.optimizer(sgd) is sgd
    assert arguments.updater(None) is None
    assert arguments.updater(print) is print
    assert arguments.file_name(Path("a")) == "a"
    assert arguments.compression({"type": "1bit", "threshold": 0}) == ("1bit", 0.0)
    assert arguments.compression({"type": "2bit"}) == ("2bit", 0.5)


@pytest.mark.parametrize(
    "states",
    [
        b"",
        b"garbage!",
        pickle.dumps([1, 2]),
        pickle.dumps({1.5: None}),
        pickle.dumps(({}, "no optimizer")),
        pickle.dumps({"w": 1})[:-3],
    ],
)
def test_states_that_are_none_change_nothing(states: bytes) -> None:
    updater = mx.optimizer.get_updater(mx.optimizer.SGD(momentum=0.9))
    weight = mx.nd.ones((2,))
    updater("w", ONE, weight)
    kept, optimizer = updater.states, updater.optimizer
    with pytest.raises(InvalidArgumentError, match="'name' holds no optimizer states") as raised:
        arguments.load_states(updater, states, "name")
    assert isinstance(raised.value, mx.MXNetError)
    assert updater.states is kept
    assert updater.optimizer is optimizer
    updater("w", ONE, weight)


@pytest.mark.parametrize("dumped", [False, True])
def test_states_that_are_some(dumped: bool) -> None:
    updater = mx.optimizer.get_updater(mx.optimizer.SGD(momentum=0.9))
    updater("w", ONE, mx.nd.ones((2,)))
    other = mx.optimizer.get_updater(mx.optimizer.SGD())
    arguments.load_states(other, updater.get_states(dumped), "name")
    assert list(other.states) == ["w"]
    assert (other.optimizer.momentum == 0.9) == dumped
