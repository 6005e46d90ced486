"""What workers in local steps must have in common, compared as the training begins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from pslite_ext import _core
from pslite_ext.errors import InvalidArgumentError
from pslite_ext.torch.agreement import claim_alike, claim_model, claim_optimizer, options_of
from pslite_ext.torch.values import memory, wire_key

BY = "mercury.local_steps"


class LocalArguments(NamedTuple):
    every: int
    fragments: int
    delay: int
    alpha: float

    def __str__(self) -> str:
        every, fragments, delay, alpha = self
        whole = f"every={every:.0f}, fragments={fragments:.0f}, delay={delay:.0f}"
        return f"{whole}, alpha={alpha:g}"


def claim_arguments(number: int, mine: LocalArguments) -> None:
    """All workers train this model in local steps, and have the same arguments; whoever does not
    hears of both."""
    try:
        _core.claim_model(wire_key(number, "model", ""), [(BY, "how it is trained")])
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"all workers must call {BY}: {error}") from None
    if _core.outside() is None:  # nobody else says it once more
        rows = torch.zeros(_core.places(), len(mine), dtype=torch.float64, device="cpu")
        rows[_core.rank()] = torch.tensor(mine, dtype=torch.float64, device="cpu")
        key = wire_key(number, "arguments", "")
        tensor = _core.Tensor(key, "arguments of local steps", "float64", [rows.numel()])
        tensor.sum_memory(memory(rows)).wait()
        for rank, row in enumerate(rows.tolist()):
            other = LocalArguments(*row)
            if other.every and other != mine:  # else nobody is there
                raise InvalidArgumentError(
                    f"{BY}: all workers must ask for the same: worker {_core.rank()} has {mine}; "
                    f"worker {rank} has {other}"
                )
    _core.claim_model(wire_key(number, "arguments", "said"), [(str(mine), f"of {BY}")])


def claim_parts(
    number: int,
    parts: Sequence[Sequence[Any]],
    names: dict[Any, str],
    codec: Callable[[Any], str],
    optimizer: Any,
) -> None:
    """The same parameters in the same fragments, and the same optimizer."""
    claim_model(number, "local", names, codec, optimizer)
    lines = [
        (f"{names[parameter]} in fragment {index}", "parameter")
        for index, part in enumerate(parts)
        for parameter in part
    ]
    _core.claim_model(wire_key(number, "fragments", ""), lines)
    claim_optimizer(number, names, optimizer)


def claim_outer(number: int, outers: Sequence[Any]) -> None:
    """Outer optimizers of one kind, with the same options."""
    said = []
    for index, outer in enumerate(outers):
        groups = outer.param_groups
        options = [line for group in range(len(groups)) for line in options_of(groups, group)]
        said += [f"outer {line} of fragment {index}" for line in (type(outer).__name__, *options)]
    claim_alike(wire_key(number, "outer", ""), said)
