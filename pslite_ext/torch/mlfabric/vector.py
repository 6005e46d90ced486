"""The parameters that an optimizer has, as one array: each in the order of its memory.

Thread-safety: none. Invariant: parameters are float32 and lie in memory as they did at first, as
all workers have agreed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from pslite_ext.errors import InvalidArgumentError


class ParameterVector:
    """`names`: of the parameters, in the optimizer's order."""

    def __init__(self, names: Mapping[Any, str]) -> None:
        for parameter, name in names.items():
            if parameter.dtype is not torch.float32:
                raise InvalidArgumentError(
                    f"mercury.fabric: parameter '{name}' is {parameter.dtype}: under MLfabric "
                    "parameters that are trained are float32 (torch.autocast computes with less)"
                )
        self.names = dict(names)
        self.size = sum(parameter.numel() for parameter in names)
        self._places = {p: (p.numel(), tuple(p.shape), p.stride()) for p in names}

    def parts(self, flat: Any) -> list[Any]:
        """Of a tensor of `size` elements, each parameter's, in its shape."""
        places = self._places.values()
        parts = flat.split([count for count, _, _ in places])
        return [part.as_strided(*how) for part, (_, *how) in zip(parts, places)]

    def values(self) -> Any:
        """A NumPy array of the parameters."""
        self.check()
        flat = torch.empty(self.size, dtype=torch.float32, device="cpu")
        for part, parameter in zip(self.parts(flat), self.names):
            part.copy_(parameter.detach())
        return flat.numpy()

    def put(self, values: Any) -> None:
        """Into the parameters."""
        with torch.no_grad():
            for part, parameter in zip(self.parts(torch.from_numpy(values)), self.names):
                parameter.copy_(part)

    def check(self) -> None:
        """Whether they are as they were."""
        for (parameter, name), (_, shape, stride) in zip(self.names.items(), self._places.values()):
            now = parameter.dtype, tuple(parameter.shape), parameter.stride()
            if now != (torch.float32, shape, stride):
                raise InvalidArgumentError(
                    f"parameter '{name}' is {now[0]} of shape {now[1]} and strides {now[2]}, but "
                    f"it was {torch.float32} of shape {shape} and strides {stride}: convert the "
                    "model before mercury.fabric"
                )
