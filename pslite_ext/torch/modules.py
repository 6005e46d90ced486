"""A wrapped model's modules: which of them wait before they run, and what they refuse.

Operations of torch's hear that a parameter waits, so modules made of these need no hook. What runs
outside of them has one: a compiled module, and whatever class is not torch's own, for it may hand a
parameter to a function that torch does not know.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import torch

from pslite_ext.errors import InvalidArgumentError

_is_compiling = getattr(torch.compiler, "is_compiling", None)  # before torch 2.3
_SHARDED = ("FullyShardedDataParallel", "FSDPModule")


class Hook:
    """A module's. In a copy of the module, or a pickled one, it does nothing.

    In a graph of torch.compile's, `apart` is called instead, outside of the graph.
    """

    def __init__(self, call: Callable[..., None], apart: Callable[[], None] | None = None) -> None:
        self._call, self._apart = call, apart

    def __call__(self, *args: Any) -> None:
        if self._apart is not None and (_is_compiling is None or _is_compiling()):
            self._outside()
        else:
            self._call(*args)

    @torch.compiler.disable  # type: ignore[misc]
    def _outside(self) -> None:
        assert self._apart is not None
        self._apart()

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (contextlib.nullcontext(), "__exit__")  # takes anything, and returns None


class ForwardHook(Hook):
    """Before a forward."""

    @property
    def __name__(self) -> str:
        """Asked for by torch.jit.script, which would make a function of the hook."""
        raise InvalidArgumentError(
            "a wrapped model cannot be scripted: make the same model again, give it this one's "
            "state_dict(), and script that"
        )


def _is_compiled(module: Any) -> bool:
    return hasattr(module, "_orig_mod") or getattr(module, "_compiled_call_impl", None) is not None


def is_scripted(module: Any) -> bool:
    """Nobody hears of its parameters' use: they are waited for before the model begins."""
    return isinstance(module, torch.jit.ScriptModule)


def waiting(model: Any) -> Iterator[tuple[Any, list[Any]]]:
    """Modules that wait before they run, and the parameters that each waits for."""
    inside: set[Any] = set()  # all that is in it has been waited for before it begins
    for module in model.modules():  # whoever holds a module comes before it
        if module in inside or is_scripted(module):
            continue
        if _is_compiled(module):
            inside.update(module.modules())
            yield module, list(module.parameters())
        elif not type(module).__module__.startswith("torch.nn."):
            own = list(module.parameters(recurse=False))
            if own:
                yield module, own


def refuse_other_parallel(model: Any, by: str) -> None:
    """What sums gradients by itself."""
    for name, module in model.named_modules():
        kinds = [kind.__name__ for kind in type(module).__mro__]
        where = f" in '{name}'" if name else ""
        if "DistributedDataParallel" in kinds:
            raise InvalidArgumentError(
                f"{by}: there is a DistributedDataParallel{where}, which sums gradients, "
                "too: wrap the model that is in it, and leave DistributedDataParallel out"
            )
        if "DataParallel" in kinds:
            raise InvalidArgumentError(
                f"{by}: there is a DataParallel{where}, whose copies wait for no update: start a "
                "worker for each GPU instead"
            )
        for kind in _SHARDED:
            if kind in kinds:
                raise InvalidArgumentError(
                    f"{by}: there is a {kind}{where}, which shards parameters: use it with "
                    "a process group of its own, without us"
                )


def refuse_sharded(model: Any, what: str) -> None:
    """What each process has a part of."""
    shards = [
        (name, type(its).__name__)
        for name, its in itertools.chain(model.named_parameters(), model.named_buffers())
        if hasattr(its, "device_mesh")
    ]
    for name, module in model.named_modules():
        kinds = [kind.__name__ for kind in type(module).__mro__]
        shards += [(name, kind) for kind in _SHARDED if kind in kinds]
    for name, kind in shards:
        where = f" in '{name}'" if name else ""
        raise InvalidArgumentError(
            f"{what} has a {kind}{where}, of which each worker has a shard, and all would go on "
            "with that of worker 0: save it by torch.distributed.checkpoint"
        )


def refuse_parallel_around(model: Any, caller: str = "mercury.wrap") -> None:
    """In a wrapped model's forward, or in that of a copy that DataParallel has made."""
    if getattr(model, "_is_replica", False):
        raise InvalidArgumentError(
            f"this model was given to {caller}, and to DataParallel as well, whose copies wait for "
            "no update: start a worker for each GPU instead"
        )
    ddp = torch.nn.parallel.DistributedDataParallel
    if getattr(ddp, "_active_ddp_module", None) is not None:
        raise InvalidArgumentError(
            f"this model was given to {caller}, and to DistributedDataParallel as well, so its "
            "gradients would be averaged twice: leave DistributedDataParallel out (Hugging Face's "
            "Trainer and accelerate add it by themselves: docs/pytorch.md)"
        )


def refuse_assign(_state: Any, _prefix: str, metadata: Any, *_others: Any) -> None:
    """A hook before load_state_dict: then the optimizer would have other parameters."""
    if metadata.get("assign_to_params_buffers"):
        raise InvalidArgumentError(
            "load_state_dict(assign=True) puts other parameters in the place of those that the "
            "optimizer has: load without assign, or before the optimizer is made"
        )
