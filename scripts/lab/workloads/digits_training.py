"""A small real model whose accuracy can be followed: 784-300-10 on scikit-learn's digits, in NumPy.

The model is one vector of float32, ELEMENTS numbers, just under a megabyte. All that is random
comes from seeds: a worker's batches are the same under every system that trains it.
"""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[3]
INPUTS, HIDDEN, CLASSES = 784, 300, 10
SHAPES = ((INPUTS, HIDDEN), (HIDDEN,), (HIDDEN, CLASSES), (CLASSES,))
ELEMENTS = sum(int(np.prod(shape)) for shape in SHAPES)
BATCH = 8
_ONE_IMAGE_IN = 2  # of the test set is looked at: accuracy is asked for often


class Digits(NamedTuple):
    train_x: Any
    train_y: Any
    test_x: Any
    test_y: Any

    def save(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path, **self._asdict())

    @classmethod
    def read(cls, path: Path) -> Digits:
        """What `save` wrote; for Pythons that have no scikit-learn."""
        with np.load(path) as found:
            return cls(*(found[name] for name in cls._fields))


def load() -> Digits:
    """As the examples have them; SystemExit says what is missing."""
    train_x, train_y, test_x, test_y = runpy.run_path(str(ROOT / "examples" / "digits.py"))[
        "load"
    ]()
    return Digits(
        *(train_x.reshape(-1, INPUTS), train_y.astype(int)),
        *(test_x.reshape(-1, INPUTS)[::_ONE_IMAGE_IN], test_y.astype(int)[::_ONE_IMAGE_IN]),
    )


def _parts(vector: Any) -> list[Any]:
    """The layers' arrays, as views."""
    found, at = [], 0
    for shape in SHAPES:
        size = int(np.prod(shape))
        found.append(vector[at : at + size].reshape(shape))
        at += size
    return found


def first_model() -> Any:
    random = np.random.default_rng(17)
    vector = np.zeros(ELEMENTS, np.float32)
    for part in _parts(vector):
        if part.ndim == 2:
            part[:] = random.standard_normal(part.shape) * np.sqrt(2 / part.shape[0])
    return vector


def gradient(model: Any, x: Any, y: Any) -> Any:
    """Of the mean cross-entropy."""
    w1, b1, w2, b2 = _parts(model)
    out = np.empty(ELEMENTS, np.float32)
    g1, gb1, g2, gb2 = _parts(out)
    hidden = np.maximum(x @ w1 + b1, 0)
    scores = hidden @ w2 + b2
    scores -= scores.max(1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(1, keepdims=True)
    scores[np.arange(len(y)), y] -= 1
    scores /= len(y)
    np.matmul(hidden.T, scores, out=g2)
    scores.sum(0, out=gb2)
    back = (scores @ w2.T) * (hidden > 0)
    np.matmul(x.T, back, out=g1)
    back.sum(0, out=gb1)
    return out


def accuracy(model: Any, digits: Digits) -> float:
    """The share of test images that it knows."""
    w1, b1, w2, b2 = _parts(model)
    scores = np.maximum(digits.test_x @ w1 + b1, 0) @ w2 + b2
    return float((scores.argmax(1) == digits.test_y).mean())


class Batches:
    """What one worker draws, one batch after another."""

    def __init__(self, digits: Digits, worker: int, size: int = BATCH, seed: int = 5) -> None:
        self._digits = digits
        self._random = np.random.default_rng([seed, worker])
        self._size = size

    def next(self) -> tuple[Any, Any]:
        chosen = self._random.integers(len(self._digits.train_y), size=self._size)
        return self._digits.train_x[chosen], self._digits.train_y[chosen]


class Learner:
    """A worker's part of the training: an update is a step against the gradient of a batch."""

    def __init__(self, digits: Digits, worker: int, step: float) -> None:
        self._digits = digits
        self._batches = Batches(digits, worker)
        self._step = step

    def update(self, model: Any, applied: bool) -> Any:
        return np.multiply(gradient(model, *self._batches.next()), -self._step)

    def quality(self, model: Any) -> float:
        return accuracy(model, self._digits)
