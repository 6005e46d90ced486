"""The small model learns, its gradient is that of its loss, and batches come from seeds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scripts.lab.workloads import digits_training
from scripts.lab.workloads.digits_training import Batches, Digits, accuracy, first_model, gradient


@pytest.fixture(scope="module")
def digits() -> Digits:
    try:
        return digits_training.load()
    except SystemExit as missing:
        pytest.skip(str(missing))


def _loss(model: Any, x: Any, y: Any) -> float:
    w1, b1, w2, b2 = digits_training._parts(model)
    scores = np.maximum(x @ w1 + b1, 0) @ w2 + b2
    return float((np.log(np.exp(scores).sum(1)) - scores[np.arange(len(y)), y]).mean())


def test_the_gradient_is_that_of_the_loss(digits: Digits) -> None:
    x, y = Batches(digits, 0).next()
    model = first_model()
    slope = gradient(model, x, y)
    assert slope.shape == (digits_training.ELEMENTS,)
    direction = np.random.default_rng(1).standard_normal(slope.size)
    direction /= np.linalg.norm(direction)
    wide, step = model.astype(np.float64), 1e-4
    difference = _loss(wide + step * direction, x, y) - _loss(wide - step * direction, x, y)
    assert difference / (2 * step) == pytest.approx(slope @ direction, rel=0.02, abs=1e-4)


def test_it_learns(digits: Digits) -> None:
    model, batches = first_model(), Batches(digits, 0, size=64)
    before = accuracy(model, digits)
    for _ in range(60):
        model -= 0.05 * gradient(model, *batches.next())
    assert before < 0.3
    assert accuracy(model, digits) > 0.8


def test_a_worker_s_batches_are_its_own_and_always_the_same(digits: Digits) -> None:
    def labels(worker: int) -> list[int]:
        batches = Batches(digits, worker)
        return [int(y) for _ in range(5) for y in batches.next()[1]]

    assert labels(1) == labels(1) != labels(2)


def test_what_is_written_is_read(digits: Digits, tmp_path: Path) -> None:
    digits.save(tmp_path / "digits.npz")
    for a, b in zip(digits, Digits.read(tmp_path / "digits.npz")):
        np.testing.assert_array_equal(a, b)
