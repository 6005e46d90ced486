"""A small real data set that a package ships: scikit-learn's 8x8 digits, as LeNet's 28x28."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits


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
    digits = load_digits()
    images = _enlarge(digits.images.astype(np.float32) / 16, 28)[:, None].astype(np.float32)
    order = np.random.RandomState(seed).permutation(len(images))
    images, labels = images[order], digits.target[order].astype(np.float32)
    cut = len(images) * 4 // 5
    return images[:cut], labels[:cut], images[cut:], labels[cut:]
