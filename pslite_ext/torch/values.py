"""Tensors of torch as the core takes them, and worker 0's values for all workers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import torch

from pslite_ext import _core

# What worker 0's values travel in: each is kept by a server.
BATCH_BYTES = 64 << 20


def type_name(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def wire_key(model: int, part: str, name: str) -> int:
    """64 bits that are the same on all workers and unlike those of any other tensor of the job."""
    digest = hashlib.blake2b(f"torch/{model}/{part}/{name}".encode(), digest_size=8)
    return int.from_bytes(digest.digest(), "little")


def memory(tensor: Any) -> _core.Memory:
    """Of a contiguous tensor on the CPU, wherever the script has torch make new ones."""
    assert tensor.device.type == "cpu", f"on {tensor.device}"
    return tensor, tensor.data_ptr(), tensor.numel() * tensor.element_size()


def value_bytes(tensor: Any) -> Any:
    """As a tensor of one dimension, on the CPU."""
    return tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)


def _batches(tensors: Iterable[Any]) -> list[list[Any]]:
    batches: list[list[Any]] = []
    room = 0
    for tensor in tensors:
        size = tensor.numel() * tensor.element_size()
        if size == 0:
            continue
        if not batches or size > room:
            batches.append([])
            room = BATCH_BYTES
        batches[-1].append(tensor)
        room -= size
    return batches


def take_from_worker_0(model: int, part: str, tensors: Sequence[Any]) -> None:
    """Every worker's `tensors` become worker 0's, bit for bit."""
    started = []
    for number, batch in enumerate(_batches(tensors)):
        name = f"{part} {number}"
        size = sum(t.numel() * t.element_size() for t in batch)
        tensor = _core.Tensor(wire_key(model, "first", name), name, "int8", [size])
        if _core.rank() == 0:
            flat = torch.cat([value_bytes(t) for t in batch])
            started.append((batch, flat, tensor, tensor.first_value(memory(flat))))
        else:
            flat = torch.empty(size, dtype=torch.uint8, device="cpu")
            started.append((batch, flat, tensor, tensor.pull_memory(memory(flat))))
    for batch, flat, _, work in started:
        work.wait()
        if _core.rank() != 0:
            put_bytes(flat, batch)


def put_bytes(flat: Any, tensors: Sequence[Any]) -> None:
    """Into them, one behind the other."""
    sizes = [t.numel() * t.element_size() for t in tensors]
    with torch.no_grad():
        for tensor, part in zip(tensors, flat.split(sizes)):
            # A part may begin anywhere; numbers begin at multiples of their size.
            tensor.copy_(part.clone().view(tensor.dtype).reshape(tensor.shape))
