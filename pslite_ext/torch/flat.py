"""Tensors of a collective as the memory that travels: contiguous, of one dimension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import torch

from pslite_ext.errors import InvalidArgumentError
from pslite_ext.torch.collectives import can_sum
from pslite_ext.torch.staging import KINDS

# What has no sum of its own type is summed in one that has room for it.
WIDER = {torch.bool: torch.int32, torch.int16: torch.int32}
BITS = ("BAND", "BOR", "BXOR")


def refuse(text: str) -> NoReturn:
    raise InvalidArgumentError(f"the backend 'mercury': {text}")


def check(tensor: Any) -> None:
    if tensor.device.type not in KINDS:
        refuse(f"a tensor on {tensor.device}: only {' and '.join(KINDS)} are supported")
    if tensor.layout != torch.strided:
        refuse(f"a tensor of layout {tensor.layout}: only dense ones are supported")


def operation_of(opts: Any) -> str:
    return str(getattr(opts.reduceOp, "op", opts.reduceOp).name)


def check_operation(name: str, tensor: Any) -> None:
    check(tensor)
    dtype = tensor.dtype
    possible = can_sum(WIDER.get(dtype, dtype)) or (dtype.is_complex and name in ("SUM", "AVG"))
    possible &= not (name == "AVG" and dtype == torch.bool)
    possible &= not (name in BITS and dtype.is_floating_point) and name != "PREMUL_SUM"
    if not possible:
        refuse(f"no {name} of {dtype}")


def flat_of(tensor: Any) -> Any:
    """Its memory, or a copy if that is not contiguous."""
    check(tensor)
    return tensor.detach().contiguous().view(-1)


def numbers(tensor: Any, copied: bool = False) -> Any:
    """What is summed for it: its memory, if that can be, and need not be kept."""
    flat = flat_of(torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor)
    wide = flat.to(WIDER.get(flat.dtype, flat.dtype))
    return wide.clone() if copied and wide.data_ptr() == tensor.data_ptr() else wide


def bytes_of(tensor: Any) -> Any:
    return flat_of(tensor).view(torch.uint8)


def put(tensor: Any, flat: Any) -> None:
    """Unless it is there already."""
    if tensor.data_ptr() != flat.data_ptr():
        place = torch.view_as_real(tensor) if tensor.is_complex() else tensor
        place.detach().copy_(flat.view(place.shape))


def put_bytes(tensor: Any, flat: Any) -> None:
    """A part of other bytes may begin anywhere; numbers begin at multiples of their size."""
    tensor.detach().copy_(flat.clone().view(tensor.dtype).view(tensor.shape))


def in_one_piece(tensor: Any, what: str) -> Any:
    check(tensor)
    if tensor.device.type != "cpu":
        refuse(f"{what}, of a tensor on {tensor.device}: only the CPU is supported")
    if not tensor.is_contiguous():
        refuse(f"{what} needs a contiguous tensor")
    return tensor.detach()


def sizes_of(flats: Sequence[Any]) -> str:
    return ", ".join(f"{flat.numel()} {flat.dtype}".replace("torch.", "") for flat in flats)


def host_place(tensor: Any) -> Any:
    """Memory of the host for its bytes."""
    return torch.empty_like(bytes_of(tensor), device="cpu")


def tensors_in(result: Any) -> list[Any]:
    """A tensor, or lists of them, as a list."""
    return (
        [result] if isinstance(result, torch.Tensor) else [t for r in result for t in tensors_in(r)]
    )
