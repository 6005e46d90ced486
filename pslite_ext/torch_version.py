"""Which PyTorch ours works with; importing this needs none, and starts nothing."""

from __future__ import annotations

TORCH_LEAST = (2, 1)


def is_too_old(version: str) -> bool:
    return tuple(int(part) for part in version.split(".")[:2]) < TORCH_LEAST
