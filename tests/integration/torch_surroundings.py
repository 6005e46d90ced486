"""What else goes on in a process that trains, for torch_uses.py."""

from __future__ import annotations

import threading
from typing import Any
from unittest.mock import patch

import torch
from torch import nn

import pslite_ext.torch as mercury
from pslite_ext.torch.updates import Updates
from tests.integration.torch_pairs import alike, inputs, layers, pair, sgd, step


def batch_norm_over_workers_without_a_group() -> None:
    """It says so; a process group would be a script's own affair."""
    pair(lambda: nn.SyncBatchNorm.convert_sync_batchnorm(layers()))


def where_new_tensors_go_elsewhere() -> None:
    """As after torch.set_default_device, while the parameters are on the CPU."""
    batches = inputs()
    torch.manual_seed(3)
    model, alone = layers(), layers()
    alone.load_state_dict(model.state_dict())
    optimizer, other = sgd(model), sgd(alone)
    with torch.device("meta"):
        mercury.wrap(model, optimizer)
        for x in batches:
            step(model, optimizer, x)
            step(alone, other, x)
        model.load_state_dict(model.state_dict())
        alike(model, alone)


class Held(torch.optim.SGD):  # type: ignore[misc]
    """Its step lets another thread use a parameter that is still to be updated, and gives it time
    to begin a step, which it must not."""

    mercury_per_parameter = True
    is_stepping = False
    other: threading.Thread | None = None

    def step(self, closure: Any = None) -> None:
        assert not self.is_stepping
        self.is_stepping = True
        if self.other is not None:
            self.other.start()
            self.other.join(0.2)
            self.other = None
        super().step(closure)
        self.is_stepping = False


class Apart(nn.Module):  # type: ignore[misc]
    """Parameters of two types, which do not travel together."""

    def __init__(self) -> None:
        super().__init__()
        self.narrow, self.wide = nn.Linear(4, 2), nn.Linear(4, 2, dtype=torch.float64)

    def forward(self, x: Any) -> Any:
        return self.narrow(x) + self.wide(x.double())


def a_thread_that_uses_parameters() -> None:
    model, optimizer, alone, other = pair(Apart, lambda m: Held(m.parameters(), lr=0.1))
    step(model, optimizer, inputs()[0])
    step(alone, other, inputs()[0])
    alike(model, alone)
    seen: list[Any] = []
    use = threading.Thread(target=lambda: seen.append(model.wide.weight.detach().clone()))
    step(model, optimizer, inputs()[1])
    step(alone, other, inputs()[1])
    optimizer.other = use
    with patch.object(Updates, "_arrived_first", lambda *_: []):  # only what is asked for
        model.narrow.weight.sum()
    use.join()
    torch.testing.assert_close(seen, [alone.wide.weight.detach()])
    alike(model, alone)


SURROUNDINGS = (
    batch_norm_over_workers_without_a_group,
    where_new_tensors_go_elsewhere,
    a_thread_that_uses_parameters,
)
