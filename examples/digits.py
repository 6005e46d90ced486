"""A small real data set that a package ships: scikit-learn's 8x8 digits, as LeNet's 28x28.

Its file alone is read: who can import scikit-learn does so with MXNet, which then takes half as
long again. So the development environments have the package beside the path, in `digits`.
"""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder
from pathlib import Path

import numpy as np


def _table() -> np.ndarray:
    """A row for each picture: 64 grey values from 0 to 16, and the digit."""
    package = PathFinder.find_spec("sklearn", [*sys.path, str(Path(sys.prefix) / "digits")])
    if package is None or not package.submodule_search_locations:
        raise SystemExit("the digits come with scikit-learn: pip install scikit-learn")
    folder = Path(package.submodule_search_locations[0])
    return np.loadtxt(folder / "datasets" / "data" / "digits.csv.gz", delimiter=",")


def _enlarge(images: np.ndarray, size: int) -> np.ndarray:
    """Bilinear, along both axes."""
    at = np.linspace(0, images.shape[1] - 1, size)
    low = np.floor(at).astype(int)
    high = np.minimum(low + 1, images.shape[1] - 1)
    part = (at - low).astype(np.float32)
    rows = images[:, low] * (1 - part)[None, :, None] + images[:, high] * part[None, :, None]
    return rows[:, :, low] * (1 - part) + rows[:, :, high] * part


def load(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training images and labels, test images and labels; the same split on every node."""
    table = _table()
    pictures = table[:, :-1].reshape(-1, 8, 8).astype(np.float32) / 16
    images = _enlarge(pictures, 28)[:, None].astype(np.float32)
    order = np.random.RandomState(seed).permutation(len(images))
    images, labels = images[order], table[order, -1].astype(np.float32)
    cut = len(images) * 4 // 5
    return images[:cut], labels[:cut], images[cut:], labels[cut:]
