"""What a checkpoint holds under PyTorch: of modules and optimizers what all workers have alike, and
each worker's own buffers, random numbers, and whatever else has a `state_dict`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import torch

from pslite_ext import _core
from pslite_ext.errors import InvalidArgumentError
from pslite_ext.saving import random_numbers
from pslite_ext.saving.checkpoint import Checkpoint
from pslite_ext.torch import this_worker


def checkpoint(folder: str | Path, every: int, keep: int, objects: Mapping[str, Any]) -> Checkpoint:
    front = TorchState(objects)
    workers = this_worker.join()
    made = Checkpoint(folder, front, _core.rank(), workers, every, keep)
    this_worker.at_end(made.wait)
    return made


def _copied(value: Any) -> Any:
    """On the host, and nobody else's."""
    if isinstance(value, torch.Tensor):
        return value.detach().to("cpu", copy=True)
    if isinstance(value, Mapping):
        return {key: _copied(its) for key, its in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_copied(its) for its in value)
    return value


def _buffers(module: Any) -> set[str]:
    """Names in its state of what is no parameter."""
    parameters = {name for name, _ in module.named_parameters(remove_duplicate=False)}
    return {name for name in module.state_dict(keep_vars=True) if name not in parameters}


class TorchState:
    """Of the objects that a script names."""

    def __init__(self, objects: Mapping[str, Any]) -> None:
        if not objects:
            raise InvalidArgumentError(
                "checkpoint: name what is to be saved: checkpoint(folder, every=100, model=model, "
                "optimizer=optimizer)"
            )
        for name, its in objects.items():
            if not (hasattr(its, "state_dict") and hasattr(its, "load_state_dict")):
                raise InvalidArgumentError(
                    f"checkpoint: {name} is a {type(its).__name__}, which has no state_dict and "
                    "load_state_dict"
                )
        self._objects = objects

    def capture_shared(self) -> dict[str, Any]:
        alike = {}
        for name, its in self._objects.items():
            if isinstance(its, torch.nn.Module):
                buffers = _buffers(its)
                state = its.state_dict().items()
                alike[name] = _copied({key: v for key, v in state if key not in buffers})
            elif isinstance(its, torch.optim.Optimizer):
                alike[name] = _copied(its.state_dict())
        return {"alike": alike, "own": self._own()}

    def capture_own(self) -> dict[str, Any]:
        devices = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
        random = {**random_numbers.capture(), "torch": torch.get_rng_state(), "cuda": devices}
        return {"own": self._own(), "random": _copied(random)}

    def _own(self) -> dict[str, Any]:
        own = {}
        for name, its in self._objects.items():
            if isinstance(its, torch.nn.Module):
                state = its.state_dict()
                own[name] = _copied({key: state[key] for key in _buffers(its)})
            elif not isinstance(its, torch.optim.Optimizer):
                own[name] = _copied(its.state_dict())
        return own

    def dump(self, state: Any, file: Any) -> None:
        torch.save(state, file)

    def load(self, file: BinaryIO) -> Any:
        try:
            return torch.load(file, map_location="cpu", weights_only=True)
        except Exception as error:  # its own kinds differ between versions
            raise InvalidArgumentError(
                "a checkpoint holds an object of a class that torch does not load safely "
                f"(torch.serialization.add_safe_globals allows more): {error}"
            ) from None

    def restore(self, shared: Any, mine: Any) -> None:
        alike, own = shared["alike"], (mine or shared)["own"]
        if {*alike, *own} != {*self._objects}:
            raise InvalidArgumentError(
                f"it has {', '.join(sorted({*alike, *own}))}, and the script saves "
                f"{', '.join(sorted(self._objects))}"
            )
        for name, its in self._objects.items():
            is_module = isinstance(its, torch.nn.Module)
            state = {**alike[name], **own[name]} if is_module else alike.get(name, own.get(name))
            try:
                its.load_state_dict(state)
            except (RuntimeError, ValueError, KeyError, TypeError) as error:
                raise InvalidArgumentError(f"{name}: {error}") from None
        if mine is not None:
            self._restore_random(mine["random"])

    @staticmethod
    def _restore_random(state: dict[str, Any]) -> None:
        random_numbers.restore(state)
        torch.set_rng_state(state["torch"])
        devices = state["cuda"]
        if devices and torch.cuda.is_available() and len(devices) == torch.cuda.device_count():
            torch.cuda.set_rng_state_all(devices)
