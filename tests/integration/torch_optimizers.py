"""Optimizers to train with: all of torch.optim's in each of their ways, and other packages'.

Those are there if they are installed. Each is made of a list of parameters.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import sys
import types
from collections.abc import Callable
from typing import Any

import torch

Make = Callable[[Any], Any]
WAYS: dict[str, dict[str, bool]] = {
    "plain": {"foreach": False},
    "foreach": {"foreach": True},
    "fused": {"fused": True},
}
# LBFGS and SparseAdam are refused; Muon has matrices only.
_NOT_TRIED = ("Optimizer", "LBFGS", "SparseAdam", "Muon")
_RATES = {"SGD": 0.05, "ASGD": 0.05, "Adadelta": 1.0, "Adagrad": 0.05}
_MORE = {"SGD": {"momentum": 0.9, "nesterov": True}, "RMSprop": {"momentum": 0.5, "centered": True}}
_TIMM = {
    "adan": "Adan",
    "lamb": "Lamb",
    "adafactor": "Adafactor",
    "adabelief": "AdaBelief",
    "lars": "Lars",
    "nvnovograd": "NvNovoGrad",
    "laprop": "LaProp",
    "mars": "Mars",
}
_OF_PYTORCH_OPTIMIZER = (
    *("Adan", "SOAP", "Ranger", "Yogi", "ADOPT", "Lamb", "Shampoo", "AdEMAMix"),
    *("StableAdamW", "QHAdam", "ScheduleFreeAdamW", "Amos"),
)


def _of_torch(device: str) -> dict[str, Make]:
    made: dict[str, Make] = {}
    for name in dir(torch.optim):
        kind = getattr(torch.optim, name)
        if name in _NOT_TRIED or not isinstance(kind, type):
            continue
        for way, how in WAYS.items():
            options = {"lr": _RATES.get(name, 0.01), "weight_decay": 1e-3, **_MORE.get(name, {})}
            if name == "Rprop":
                del options["weight_decay"]
            parameter = torch.zeros(1, device=device, requires_grad=True)
            parameter.grad = torch.zeros_like(parameter)
            try:
                kind([parameter], **options, **how).step()
            except (TypeError, RuntimeError):
                continue  # it has no such way
            made[f"{name} {way}"] = functools.partial(kind, **options, **how)
    return made


def _timm(module: str, name: str) -> Make:
    """Without the rest of timm, which needs more than torch."""

    def make(parameters: Any) -> Any:
        if "timm.optim" not in sys.modules:
            found = importlib.util.find_spec("timm")
            folders = found.submodule_search_locations if found else None
            assert folders, found
            for package, part in (("timm", ""), ("timm.optim", "optim")):
                stub = types.ModuleType(package)
                stub.__path__ = [os.path.join(folders[0], part)]
                stub.__spec__ = found  # others ask whether it is there
                sys.modules[package] = stub
        kind = getattr(importlib.import_module(f"timm.optim.{module}"), name)
        if name == "Lookahead":
            return kind(torch.optim.SGD(parameters, lr=0.05), k=2)
        return kind(parameters, lr=0.01)

    return make


def _of(package: str, name: str, **options: Any) -> Make:
    def make(parameters: Any) -> Any:
        optimizer = getattr(importlib.import_module(package), name)(parameters, **options)
        if hasattr(optimizer, "train"):
            optimizer.train()
        return optimizer

    return make


def _of_others() -> dict[str, tuple[str, Make]]:
    """With the package that each needs."""
    made = {f"timm {name}": ("timm", _timm(module, name)) for module, name in _TIMM.items()}
    made["timm Lookahead"] = ("timm", _timm("lookahead", "Lookahead"))
    for name in _OF_PYTORCH_OPTIMIZER:
        made[f"pytorch_optimizer {name}"] = (
            "pytorch_optimizer",
            _of("pytorch_optimizer", name, lr=0.01),
        )
    others = (
        ("schedulefree", "AdamWScheduleFree", {"lr": 0.01}),
        ("schedulefree", "SGDScheduleFree", {"lr": 0.1}),
        ("prodigyopt", "Prodigy", {"lr": 1.0}),
        ("pytorch_optimizer", "DAdaptAdam", {"lr": 1.0}),
        ("lion_pytorch", "Lion", {"lr": 0.001}),
        ("bitsandbytes.optim", "AdamW", {"lr": 0.01}),
        ("bitsandbytes.optim", "AdamW8bit", {"lr": 0.01}),
        ("torchao.optim", "AdamW8bit", {"lr": 0.01}),
    )
    for package, name, options in others:
        made[f"{package} {name}"] = (package.partition(".")[0], _of(package, name, **options))
    return made


def optimizers(device: str = "cpu") -> tuple[dict[str, Make], list[str]]:
    """All that are there, and the packages that are not."""
    made, missing = _of_torch(device), set()
    for name, (package, make) in _of_others().items():
        if importlib.util.find_spec(package) is None:
            missing.add(package)
        else:
            made[name] = make
    return made, sorted(missing)
