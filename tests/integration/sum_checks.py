"""Sums of every type, size and order, against sums made by hand; store_checks.py runs them."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import mxnet as mx
import numpy as np

CHECKS: list[Callable[[Any], None]] = []
SHAPE = (3, 4)
DETERMINISTIC = os.environ.get("MERCURY_DETERMINISTIC") == "1"


def check(function: Callable[[Any], None]) -> Callable[[Any], None]:
    CHECKS.append(function)
    return function


def equal(array: Any, expected: Any, tolerance: float = 0.0) -> None:
    array = array.asnumpy()
    np.testing.assert_allclose(array.astype(np.float64), expected, rtol=tolerance, atol=tolerance)


def everybody(kv: Any) -> int:
    """1 + 2 + ... + workers: the sum when worker r gives r + 1."""
    return int(kv.num_workers * (kv.num_workers + 1) // 2)


@check
def types(kv: Any) -> None:
    for name in ("float16", "float32", "float64", "int8", "uint8", "int32", "int64"):
        kv.init("t" + name, mx.nd.zeros(SHAPE, dtype=name))
        value = mx.nd.ones(SHAPE, dtype=name) * (kv.rank + 1)
        kv.pushpull("t" + name, value)
        assert value.dtype == np.dtype(name)
        equal(value, everybody(kv))


@check
def bfloat16(kv: Any) -> None:
    try:
        value = mx.nd.ones(SHAPE).astype("bfloat16")
    except (TypeError, KeyError, mx.base.MXNetError):
        return  # this MXNet has no array of it
    kv.init("bf16", mx.nd.zeros(SHAPE).astype("bfloat16"))
    kv.pushpull("bf16", value)
    equal(value.astype("float32"), kv.num_workers)


@check
def integers_wrap_and_halves_round(kv: Any) -> None:
    """Values of all bit patterns, against a plain sum in the same type."""
    random = np.random.RandomState(3)
    for name in ("int8", "uint8", "int32", "int64", "float16", "float64"):
        size = 5_003
        kv.init("w" + name, mx.nd.zeros((size,), dtype=name))
        base = random.randint(-100, 100, size).astype(name)
        value = mx.nd.array(base * np.array(kv.rank + 1, name), dtype=name)
        kv.pushpull("w" + name, value)
        total = sum((base * np.array(r + 1, name) for r in range(kv.num_workers)), base * 0)
        np.testing.assert_array_equal(value.asnumpy(), total)


@check
def pull_after_pushpull(kv: Any) -> None:
    """The last sum once more, on its own and beside the next round of another key."""
    for size in (1, 100, 200_003):
        kv.init(f"again{size}", mx.nd.zeros((size,)))
        for step in range(1, 4):
            value = mx.nd.ones((size,)) * (kv.rank + 1) * step
            kv.pushpull(f"again{size}", value, priority=-step)
            outs = [mx.nd.zeros((size,)) for _ in range(3)]
            for out in outs:
                kv.pull(f"again{size}", out=out)
            for out in [value, *outs]:
                equal(out, everybody(kv) * step)


@check
def several_megabytes_in_place(kv: Any) -> None:
    size = 2_000_003
    kv.init("big", mx.nd.zeros((size,)))
    value = mx.nd.arange(size) % 1000
    base = value.asnumpy()
    for step in range(1, 3):
        value[:] = mx.nd.array(base * step)
        kv.pushpull("big", value)
        equal(value, base.astype(np.float64) * step * kv.num_workers)


@check
def many_at_once_in_another_order(kv: Any) -> None:
    """Workers ask for the same keys in different orders and with different priorities."""
    keys = list(range(100, 160))
    kv.init(keys, [mx.nd.zeros((k * 7,)) for k in keys])
    for step in range(3):
        random = np.random.RandomState(step * 10 + kv.rank)
        values = {k: mx.nd.ones((k * 7,)) * (k + kv.rank) for k in keys}
        for k in random.permutation(keys):
            kv.pushpull(int(k), values[k], priority=int(random.randint(-5, 5)))
        for k in keys:
            equal(values[k], sum(k + r for r in range(kv.num_workers)))


@check
def sizes(kv: Any) -> None:
    random = np.random.RandomState(1)
    for size in (1, 2, 3, 1023, 999_999, 1_000_001, 3_333_333):
        base = random.rand(size).astype(np.float32)
        kv.init(f"s{size}", mx.nd.zeros((size,)))
        value = mx.nd.array(base * (kv.rank + 1))
        kv.pushpull(f"s{size}", value)
        expected = sum((base * (r + 1)).astype(np.float64) for r in range(kv.num_workers))
        equal(value, expected, 1e-6)


@check
def views_are_views(kv: Any) -> None:
    whole = mx.nd.zeros((4, 5))
    kv.init("v", mx.nd.zeros((2, 5)))
    kv.pushpull("v", mx.nd.ones((2, 5)) * (kv.rank + 1), out=whole[1:3])
    expected = np.zeros((4, 5))
    expected[1:3] = everybody(kv)
    equal(whole, expected)
