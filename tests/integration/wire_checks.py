"""Checks that store_checks.py runs: values that travel as bf16, fp16 and int8."""

from __future__ import annotations

from typing import Any

import mxnet as mx
import numpy as np

from tests.integration.sum_checks import check, equal


def as_bf16(values: Any) -> Any:
    """Rounded to nearest even."""
    bits = np.asarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).view(np.float32)


@check
def halves_and_int8(kv: Any) -> None:
    kv = mx.kv.create("dist_sync")
    shapes = ((7,), (3, 5), (300, 211), (70001,))
    gradients = [np.random.default_rng(7).normal(size=s).astype(np.float32) for s in shapes]
    for kind, rounded in (
        ("bf16", as_bf16),
        ("fp16", lambda values: values.astype(np.float16).astype(np.float32)),
        ("int8", as_bf16),  # the small ones, and those of one dimension
        ("none", lambda values: values),
    ):
        kv.set_gradient_compression({"type": kind})
        for shape, gradient in zip(shapes, gradients):
            key = f"{kind} {shape}"
            kv.init(key, mx.nd.array(gradient))
            out = mx.nd.zeros(shape)
            kv.pull(key, out=out)
            equal(out, gradient)  # the first value is as it was given
            total = rounded(rounded(gradient) * np.float32(kv.num_workers))
            for _ in range(2):
                kv.pushpull(key, mx.nd.array(gradient), out=out)
                kv.pull(key, out=out)  # the same bits
                if kind == "int8" and shape == (300, 211):
                    exact = gradient * kv.num_workers
                    assert 0 < abs(out.asnumpy() - exact).max() < abs(exact).max() / 127 * 1.1
                else:
                    equal(out, total, 0.0 if kind != "none" else 1e-6)
    kv.init("whole numbers", mx.nd.array([1, 2, 3], dtype="int32"))
    numbers = mx.nd.array([10, 200, 3000], dtype="int32")
    kv.pushpull("whole numbers", numbers)
    equal(numbers, np.array([10, 200, 3000]) * kv.num_workers)
