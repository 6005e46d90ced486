"""How a tensor's elements lie in memory, which is the order in which they are sent.

A dense tensor fills its memory, whatever the order of its dimensions is there (`channels_last`, a
transposed matrix). Sums are made in that order, so all workers must have the same.
"""

from __future__ import annotations

from typing import Any

import torch


def _by_stride(tensor: Any) -> list[tuple[int, int, int]]:
    """(stride, size, dimension), those of one element left out, the widest first."""
    dimensions = zip(tensor.stride(), tensor.shape, range(tensor.dim()))
    return sorted((d for d in dimensions if d[1] != 1), key=lambda d: -d[0])


def is_dense(tensor: Any) -> bool:
    """Whether it fills its memory without a gap, each element in a place of its own."""
    if tensor.layout is not torch.strided:
        return False
    expected = 1
    for stride, size, _ in reversed(_by_stride(tensor)):
        if tensor.numel() and stride != expected:
            return False
        expected *= size
    return True


def same_order(one: Any, other: Any) -> bool:
    """Of two dense tensors of one shape."""
    return bool(one.stride() == other.stride() or _by_stride(one) == _by_stride(other))


def order_of(tensor: Any) -> str:
    """In words, for a dense tensor; nothing for the usual order."""
    if tensor.is_contiguous():
        return ""
    return f"dimensions in the order {', '.join(str(d) for _, _, d in _by_stride(tensor))}"


def in_memory(tensor: Any) -> Any:
    """A dense tensor's elements, real numbers in one dimension, as they lie in memory."""
    flat = tensor.detach().as_strided((tensor.numel(),), (1,))
    return torch.view_as_real(flat).view(-1) if flat.is_complex() else flat
