"""What can be wrapped: each thing that cannot is refused before the job hears of it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any, NoReturn

import torch

from pslite_ext.errors import InvalidArgumentError
from pslite_ext.torch.entries import wrapped
from pslite_ext.torch.layouts import is_dense
from pslite_ext.torch.modules import is_scripted, refuse_other_parallel
from pslite_ext.torch.optimizers import patched_by_a_scheduler, why_not
from pslite_ext.torch.staging import KINDS

SUMMED = (
    *(torch.float32, torch.float64, torch.float16, torch.bfloat16),
    *(torch.complex64, torch.complex128),
)


def _refuse(text: str) -> NoReturn:
    raise InvalidArgumentError(f"mercury.wrap: {text}")


def names_of(model: Any) -> dict[Any, str]:
    """Of all parameters of the model."""
    return {
        parameter: name.replace("_orig_mod.", "")  # torch.compile's
        for name, parameter in model.named_parameters()
    }


def check(model: Any, optimizer: Any) -> dict[Any, str]:
    """The names of all parameters of the model."""
    if not isinstance(model, torch.nn.Module):
        _refuse(f"a torch.nn.Module is needed, not {type(model).__name__}")
    if not isinstance(optimizer, torch.optim.Optimizer):
        _refuse(f"a torch.optim.Optimizer is needed, not {type(optimizer).__name__}")
    if is_scripted(model):
        _refuse("a scripted model takes no hooks: wrap the model, and script parts of it at most")
    refuse_other_parallel(model)
    if reason := why_not(optimizer):
        _refuse(reason)
    names = names_of(model)
    if hasattr(optimizer, "_mercury") or any(id(parameter) in wrapped for parameter in names):
        _refuse("this model or this optimizer has been wrapped already: wrap them once, together")
    if "step" in vars(optimizer) and not patched_by_a_scheduler(optimizer):
        _refuse("something has replaced optimizer.step: wrap the optimizer before that")
    for parameter, name in names.items():
        if isinstance(parameter, torch.nn.parameter.UninitializedParameter):
            _refuse(f"parameter '{name}' has no shape yet: run the model once before it is wrapped")
        if parameter.device.type not in KINDS:
            _refuse(
                f"parameter '{name}' is on {parameter.device}: it must be on {' or '.join(KINDS)}"
            )
    check_parameters([p for group in optimizer.param_groups for p in group["params"]], names)
    return names


def check_parameters(parameters: Iterable[Any], names: dict[Any, str]) -> dict[Any, str]:
    """Those that an optimizer has, with their names."""
    known = {}
    for parameter in parameters:
        if parameter not in names:
            _refuse(
                f"the optimizer has a parameter of shape {tuple(parameter.shape)} that the model "
                "has not"
            )
        name = known[parameter] = names[parameter]
        if hasattr(type(parameter), "__tensor_flatten__") or hasattr(parameter, "device_mesh"):
            _refuse(
                f"parameter '{name}' is a {type(parameter).__name__}, which has no memory of its "
                "own that could be summed: wrap the model before it is sharded or converted"
            )
        if parameter.dtype not in SUMMED:
            _refuse(f"parameter '{name}' is {parameter.dtype}: it cannot be summed")
        if not is_dense(parameter):
            _refuse(
                f"parameter '{name}' of shape {tuple(parameter.shape)} and strides "
                f"{tuple(parameter.stride())} does not fill its memory: make it of a clone()"
            )
    return known


def check_step(optimizer: Any, parameters: Iterable[Any], has_gradient: bool) -> None:
    """Whether the optimizer may step: it has the parameters that it had, and a gradient."""
    now = (p for group in optimizer.param_groups for p in group["params"])
    if not all(a is b for a, b in itertools.zip_longest(now, parameters)):
        raise InvalidArgumentError(
            "the optimizer's parameters are not those it had when it was wrapped: give it more by "
            "add_param_group, and take none away"
        )
    if not has_gradient:
        raise InvalidArgumentError(
            "optimizer.step() without backward(): no parameter has a gradient"
        )
