"""What a newcomer is given part by part is what a checkpoint holds; checked without a job."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import torch
from torch import nn

from pslite_ext.saving import letting_in
from pslite_ext.torch.saved_state import TorchState

SLICES, LENGTH = 16, 1000


class Sliced(nn.Module):  # type: ignore[misc]
    """Of parameters that are views of one tensor; one has two names."""

    def __init__(self) -> None:
        super().__init__()
        flat = torch.randn(SLICES * LENGTH)
        for number, slice_ in enumerate(flat.split(LENGTH)):
            self.register_parameter(f"slice{number}", nn.Parameter(slice_))
        self.twice = self.slice0
        self.norm = nn.BatchNorm1d(3)
        self.register_buffer("turned", torch.randn(5, 7).t())
        self.register_buffer("empty", torch.zeros(0))


class Other:
    def __init__(self) -> None:
        self.state = {
            "array": np.arange(6.0).reshape(2, 3),
            "words": ["a", (1, None)],
            3: np.int64(7),
        }

    def state_dict(self) -> dict[Any, Any]:
        return self.state

    def load_state_dict(self, state: dict[Any, Any]) -> None:
        self.state = state


def made() -> tuple[Any, Any, Other]:
    model = Sliced()
    optimizer = torch.optim.Adam(model.parameters())
    sum(p.square().sum() for p in model.parameters()).backward()
    optimizer.step()
    return model, optimizer, Other()


def alike(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        return bool(a.dtype == b.dtype and a.stride() == b.stride() and torch.equal(a, b))
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(a, dict):
        return list(a) == list(b) and all(alike(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(alike, a, b))
    return type(a) is type(b) and bool(a == b)


def dumped(front: TorchState, state: Any) -> io.BytesIO:
    file = io.BytesIO()
    front.dump(state, file)
    file.seek(0)
    return file


def main() -> None:
    torch.manual_seed(1)
    model, optimizer, other = made()
    front = TorchState({"model": model, "optimizer": optimizer, "other": other})
    whole = dumped(front, front.capture_shared())
    for part_bytes in (1, 3 * 4 * LENGTH, 1 << 30):
        letting_in.PART_BYTES = part_bytes
        parts = [dumped(front, part) for part in front.parts()]
        assert (len(parts) > 2) == (part_bytes < 1 << 30), len(parts)
        size, least = sum(len(part.getbuffer()) for part in parts), 4 * LENGTH * (3 * SLICES + 1)
        assert least < size < 2 * least, (size, least)  # no view brings the others
        whole.seek(0)
        assert alike(front.load_parts(iter(parts)), front.load(whole))
    for part in parts:
        part.seek(0)
    torch.manual_seed(2)
    objects = made()
    newcomer = TorchState(dict(zip(("model", "optimizer", "other"), objects)))
    newcomer.restore(newcomer.load_parts(iter(parts)), None)
    for its, theirs in zip((model, optimizer, other), objects):
        assert alike(dict(its.state_dict()), dict(theirs.state_dict())), its
    print("alike")


if __name__ == "__main__":
    main()
