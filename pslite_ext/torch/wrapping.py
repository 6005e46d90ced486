"""`wrap`: what can be wrapped, and the optimizer's class afterwards."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch

from pslite_ext import _core
from pslite_ext.errors import InvalidArgumentError
from pslite_ext.torch import membership
from pslite_ext.torch.alone import Alone
from pslite_ext.torch.staging import KINDS
from pslite_ext.torch.training import Training
from pslite_ext.torch.values import take_from_worker_0, wire_key

SUMMED = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
# They need all gradients at once, or several evaluations, in one step.
REFUSED = ("LBFGS", "SparseAdam")
_models = itertools.count()


def _refuse(text: str) -> None:
    raise InvalidArgumentError(f"mercury.wrap: {text}")


def _is_wrapped(parameter: Any) -> bool:
    return getattr(parameter, "_mercury_slot", None) is not None


def _check(model: Any, optimizer: Any) -> dict[Any, str]:
    """The names of all parameters of the model."""
    if not isinstance(model, torch.nn.Module):
        _refuse(f"a torch.nn.Module is needed, not {type(model).__name__}")
    if not isinstance(optimizer, torch.optim.Optimizer):
        _refuse(f"a torch.optim.Optimizer is needed, not {type(optimizer).__name__}")
    kind = type(optimizer).__name__
    if kind in REFUSED:
        _refuse(f"{kind} does not update each parameter by its own gradient alone; use another")
    names = {
        parameter: name.replace("_orig_mod.", "")  # torch.compile's
        for name, parameter in model.named_parameters()
    }
    if hasattr(optimizer, "_mercury") or any(map(_is_wrapped, names)):
        _refuse("this model or this optimizer has been wrapped already: wrap them once, together")
    if "step" in vars(optimizer):
        _refuse("something has replaced optimizer.step: make learning rate schedulers after wrap")
    for parameter, name in names.items():
        if isinstance(parameter, torch.nn.parameter.UninitializedParameter):
            _refuse(f"parameter '{name}' has no shape yet: run the model once before it is wrapped")
        if parameter.device.type not in KINDS:
            _refuse(
                f"parameter '{name}' is on {parameter.device}: it must be on {' or '.join(KINDS)}"
            )
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if parameter not in names:
                _refuse(
                    f"the optimizer has a parameter of shape {tuple(parameter.shape)} that the "
                    "model has not"
                )
            if parameter.dtype not in SUMMED:
                _refuse(f"parameter '{names[parameter]}' is {parameter.dtype}: it cannot be summed")
    return names


def _claim(number: int, names: dict[Any, str], optimizer: Any) -> None:
    """All workers train the same model with the same kind of optimizer, or hear what differs."""
    said = [
        (f"{name} {parameter.dtype} {tuple(parameter.shape)}", "parameter")
        for parameter, name in names.items()
    ]
    said.append((type(optimizer).__name__, "optimizer"))
    _core.claim_model(wire_key(number, "model", ""), said)


def _class_of(base: type[Any]) -> type[Any]:
    """`base` as it is after wrap; isinstance and the name stay true."""

    def step(self: Any, closure: Callable[[], Any] | None = None) -> Any:
        """Returns at once; a parameter is updated when its sum is in."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self._mercury.step()
        return loss

    def zero_grad(self: Any, set_to_none: bool = True) -> None:
        if set_to_none:
            self._mercury.forget_gradients()
        else:
            base.zero_grad(self, set_to_none=False)

    def state_dict(self: Any) -> Any:
        self._mercury.synchronize()
        return base.state_dict(self)

    def load_state_dict(self: Any, state: Any) -> None:
        self._mercury.synchronize()
        base.load_state_dict(self, state)

    def add_param_group(self: Any, group: dict[str, Any]) -> None:
        if "_mercury" in vars(self):
            raise InvalidArgumentError(
                "a wrapped optimizer takes no more parameters: add them before mercury.wrap"
            )
        base.add_param_group(self, group)

    def synchronize(self: Any) -> None:
        """Waits until all gradients are summed, and all updates of the last step are done."""
        self._mercury.synchronize()

    def no_sync(self: Any) -> Any:
        """In this context gradients stay this worker's and add up."""
        return self._mercury.no_sync()

    own = (zero_grad, state_dict, load_state_dict, add_param_group, synchronize, no_sync)
    members = {function.__name__: function for function in own}
    members["step"] = torch.optim.Optimizer.profile_hook_step(step)
    return type(base.__name__, (base,), {**members, "__module__": base.__module__})


def _bare_step(base: type[Any]) -> Callable[[Any], Any]:
    """Without the hooks around it, which our step calls once, not once for each part."""
    step: Callable[[Any], Any] = base.step
    return getattr(step, "__wrapped__", step) if getattr(step, "hooked", False) else step


def _training(
    model: Any, optimizer: Any, names: dict[Any, str], workers: int, step: Callable[[Any], Any]
) -> Training | Alone:
    if workers == 1:
        return Alone(optimizer, names, step)
    number = next(_models)
    _claim(number, names, optimizer)
    take_from_worker_0(number, "values", [*names, *model.buffers()])
    return Training(number, model, optimizer, names, workers, step)


def wrap(model: Any, optimizer: Any) -> tuple[Any, Any]:
    names = _check(model, optimizer)
    workers = membership.join()
    base = type(optimizer)
    training = _training(model, optimizer, names, workers, _bare_step(base))
    optimizer.__class__ = _class_of(base)
    optimizer._mercury = training
    membership.at_end(training.synchronize)
    return model, optimizer
