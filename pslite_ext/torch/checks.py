"""What can be wrapped, or train in local steps: what cannot is refused before the job hears of it.

`by`: which function of ours the script has called.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable
from typing import Any, NoReturn

import torch

from pslite_ext import _core
from pslite_ext.errors import InvalidArgumentError
from pslite_ext.torch.entries import wrapped
from pslite_ext.torch.layouts import is_dense
from pslite_ext.torch.modules import is_scripted, refuse_other_parallel
from pslite_ext.torch.optimizers import (
    parameters_of,
    patched_by_a_scheduler,
    why_not,
    why_not_at_all,
)
from pslite_ext.torch.saved_state import saved
from pslite_ext.torch.staging import KINDS

SUMMED = (
    *(torch.float32, torch.float64, torch.float16, torch.bfloat16),
    *(torch.complex64, torch.complex128),
)
# The `__torch_function__` of a class that has none of its own.
_TORCHS_OWN = (
    torch.nn.Parameter.__torch_function__,
    torch.Tensor.__torch_function__.__func__,
)
WRAP = "mercury.wrap"


def _refuse(by: str, text: str) -> NoReturn:
    raise InvalidArgumentError(f"{by}: {text}")


def names_of(model: Any) -> dict[Any, str]:
    """Of all parameters of the model."""
    return {
        parameter: name.replace("_orig_mod.", "")  # torch.compile's
        for name, parameter in model.named_parameters()
    }


def check(model: Any, optimizer: Any, by: str = WRAP) -> dict[Any, str]:
    """Where steps are ours, not the optimizer's own: the names of all parameters of the model."""
    names = check_pair(model, optimizer, by)
    if is_scripted(model):
        _refuse(by, "a scripted model takes no hooks: wrap the model, and script parts of it")
    if reason := why_not(optimizer):
        _refuse(by, reason)
    return names


def check_pair(model: Any, optimizer: Any, by: str) -> dict[Any, str]:
    """What any training of ours asks for; the names of all parameters of the model."""
    if not isinstance(model, torch.nn.Module):
        _refuse(by, f"a torch.nn.Module is needed, not {type(model).__name__}")
    if not isinstance(optimizer, torch.optim.Optimizer):
        _refuse(by, f"a torch.optim.Optimizer is needed, not {type(optimizer).__name__}")
    refuse_other_parallel(model, by)
    if reason := why_not_at_all(optimizer):
        _refuse(by, reason)
    names = names_of(model)
    if hasattr(optimizer, "_mercury") or any(id(parameter) in wrapped for parameter in names):
        _refuse(
            by, "this model or this optimizer has been wrapped already: wrap them once, together"
        )
    if "step" in vars(optimizer) and not patched_by_a_scheduler(optimizer):
        _refuse(by, "something has replaced optimizer.step: wrap the optimizer before that")
    for parameter, name in names.items():
        if isinstance(parameter, torch.nn.parameter.UninitializedParameter):
            _refuse(by, f"parameter '{name}' has no shape yet: run the model once before that")
        if parameter.device.type not in KINDS:
            allowed = " or ".join(KINDS)
            _refuse(by, f"parameter '{name}' is on {parameter.device}: it must be on {allowed}")
    for name, buffer in model.named_buffers():
        if buffer.layout is not torch.strided:
            _refuse(
                by,
                f"buffer '{name}' is {buffer.layout}, and worker 0's would be given to all "
                "workers: keep it as a plain attribute, or dense",
            )
    given = parameters_of(optimizer)
    check_parameters(given, names, by)
    _check_memory(given, names, by)
    return names


def _check_memory(parameters: Iterable[Any], names: dict[Any, str], by: str) -> None:
    """No two share some: it would have one's update and lack the other's."""
    places = sorted(
        (str(p.device), p.data_ptr(), p.data_ptr() + p.numel() * p.element_size(), names[p])
        for p in parameters
        if p.numel()
    )
    for (device, _, end, name), (others, begin, _, other) in zip(places, places[1:]):
        if device == others and begin < end:
            _refuse(
                by,
                f"parameters '{name}' and '{other}' share memory: give both modules the same "
                "parameter (decoder.weight = encoder.weight)",
            )


def say_not_given(optimizer: Any, names: dict[Any, str], by: str) -> None:
    """What the model learns and the optimizer does not have."""
    given = set(parameters_of(optimizer))
    left = [name for p, name in names.items() if p.requires_grad and p not in given]
    if not left:
        return
    more = f" and {len(left) - 1} more" if len(left) > 1 else ""
    print(
        f"{by}: the optimizer does not have '{left[0]}'{more}, which require a gradient: theirs "
        "stay each worker's own; freeze them, or give them to the optimizer",
        file=sys.stderr,
    )


def check_time(model: Any, optimizer: Any, by: str) -> None:
    """Whether it is the time to give a model's training to us."""
    if model in saved or optimizer in saved:
        raise InvalidArgumentError(
            f"mercury.checkpoint has this model or optimizer already: call {by} first, since that "
            "gives all workers the values of worker 0"
        )
    if _core.came_late() and _core.outside() is None:
        raise InvalidArgumentError(
            f"this worker came while the job ran, and has been let in: call {by} for all models "
            "before mercury.checkpoint, so that they begin as the others' are"
        )


def check_parameters(
    parameters: Iterable[Any], names: dict[Any, str], by: str = WRAP
) -> dict[Any, str]:
    """Those that an optimizer has, with their names."""
    known = {}
    for parameter in parameters:
        if parameter not in names:
            _refuse(
                by,
                f"the optimizer has a parameter of shape {tuple(parameter.shape)} that the model "
                "has not",
            )
        name = known[parameter] = names[parameter]
        if hasattr(type(parameter), "__tensor_flatten__") or hasattr(parameter, "device_mesh"):
            _refuse(
                by,
                f"parameter '{name}' is a {type(parameter).__name__}, which has no memory of its "
                "own that could be summed: wrap the model before it is sharded or converted",
            )
        asked = type(parameter).__torch_function__
        if by == WRAP and getattr(asked, "__func__", asked) not in _TORCHS_OWN:
            _refuse(
                by,
                f"parameter '{name}' is a {type(parameter).__name__}, a class with a "
                "__torch_function__ of its own, which would not be called while the parameter "
                "waits for its update: make it a plain torch.nn.Parameter",
            )
        if parameter.dtype not in SUMMED:
            _refuse(by, f"parameter '{name}' is {parameter.dtype}: it cannot be summed")
        if not is_dense(parameter):
            _refuse(
                by,
                f"parameter '{name}' of shape {tuple(parameter.shape)} and strides "
                f"{tuple(parameter.stride())} does not fill its memory: make it of a clone()",
            )
    return known


def check_step(optimizer: Any, parameters: Iterable[Any], has_gradient: bool) -> None:
    """Whether the optimizer may step: it has the parameters that it had, and a gradient."""
    now = parameters_of(optimizer)
    if not all(a is b for a, b in itertools.zip_longest(now, parameters)):
        raise InvalidArgumentError(
            "the optimizer's parameters are not those it had when it was wrapped: give it more by "
            "add_param_group, and take none away"
        )
    if not has_gradient:
        raise InvalidArgumentError(
            "optimizer.step() without backward(): no parameter has a gradient"
        )
