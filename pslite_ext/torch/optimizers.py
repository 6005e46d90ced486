"""Which optimizers may step in parts, which may not be wrapped, and a wrapped one's class.

An optimizer that updates each parameter by that parameter's own gradient and state alone may do so
as gradients arrive. torch.optim's own are known to; any other makes one real step, when all sums
are there, unless its attribute `mercury_per_parameter` says that it is of that kind, too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch

# They need all gradients at once and decide by this worker's loss, or have sparse gradients.
_NEVER = ("LBFGS", "SparseAdam")
# Of torch.optim's, but not in parts: with parameters of several types, its first one's is for all.
_WHOLE = ("Adafactor",)
# Packages, classes of whose optimizers talk to other processes in a step.
_COMMUNICATING = ("horovod", "byteps", "deepspeed", "fairscale", "hivemind")
_COMMUNICATING_CLASSES = (
    "ZeroRedundancyOptimizer",
    "PostLocalSGDOptimizer",
    "DistributedOptimizer",
    "DistributedFusedAdam",
    "DistributedFusedLAMB",
    "DistributedShampoo",
)

_module = sys.modules[torch.optim.Optimizer.__module__]


def parameters_of(optimizer: Any) -> list[Any]:
    """Of all its groups, in their order."""
    return [p for group in optimizer.param_groups for p in group["params"]]


def why_not(optimizer: Any) -> str:
    """Why the gradients of this optimizer may not be summed; nothing if they may."""
    for kind in type(optimizer).__mro__:
        name = kind.__name__
        if name in _NEVER and kind.__module__.startswith("torch.optim"):
            return f"{name} does not update each parameter by its own gradient alone; use another"
    return why_not_at_all(optimizer)


def why_not_at_all(optimizer: Any) -> str:
    """Why it may not train with us; nothing if it may."""
    for kind in type(optimizer).__mro__:
        name, module = kind.__name__, kind.__module__
        package = module.partition(".")[0]
        if (
            name in _COMMUNICATING_CLASSES
            or package in _COMMUNICATING
            or module.startswith("torch.distributed.")
        ):
            return (
                f"{name} talks to the other workers in its step, which waits for their gradients "
                "already: wrap the optimizer that is in it"
            )
    return ""


def is_torchs_own(optimizer: Any) -> bool:
    kind = type(optimizer)
    own: Any = getattr(torch.optim, kind.__name__, None)
    return kind is own and f"{kind.__module__}.".startswith("torch.optim.")


def steps_in_parts(optimizer: Any) -> bool:
    """Whether parameters may be updated a few at a time."""
    said = getattr(optimizer, "mercury_per_parameter", None)
    if said is not None:
        return bool(said)
    differentiable = any(group.get("differentiable") for group in optimizer.param_groups)
    whole = differentiable or type(optimizer).__name__ in _WHOLE
    return is_torchs_own(optimizer) and not whole


def has_step_hooks(optimizer: Any) -> bool:
    """They are to see the step's results."""
    of_all = getattr(_module, "_global_optimizer_post_hooks", {})
    return bool(of_all or getattr(optimizer, "_optimizer_step_post_hooks", {}))


def bare_step(base: type[Any]) -> Callable[..., Any]:
    """Without the hooks around it, which our step calls once, not once for each part."""
    step: Callable[..., Any] = base.step
    return getattr(step, "__wrapped__", step) if getattr(step, "hooked", False) else step


def patched_by_a_scheduler(optimizer: Any) -> bool:
    """A learning rate scheduler puts a function of its own there, which notes each call."""
    step = vars(optimizer).get("step")
    return hasattr(step, "_wrapped_by_lr_sched") or hasattr(step, "_with_counter")


def step_by(optimizer: Any, training: Any, in_parts: bool) -> None:
    """From here on the optimizer steps as `training` does."""
    if patched_by_a_scheduler(optimizer):
        del optimizer.step  # the class's own does what the scheduler needs
    optimizer.__class__ = wrapped_class(type(optimizer), in_parts)
    optimizer._mercury = training


def wrapped_class(base: type[Any], in_parts: bool) -> type[Any]:
    """`base` as it is after wrap; isinstance and the name stay true."""

    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        """May return at once; a parameter is updated when its sum is in."""
        # What a scheduler's own function in `step` would note.
        self._opt_called = True
        if "_step_count" in vars(self):
            self._step_count += 1
        return self._mercury.step(*args, **kwargs)

    def zero_grad(self: Any, *args: Any, **kwargs: Any) -> None:
        to_none = kwargs.get("set_to_none", args[0] if args else True)
        if to_none and base.zero_grad is torch.optim.Optimizer.zero_grad:
            self._mercury.forget_gradients()
        else:
            base.zero_grad(self, *args, **kwargs)

    def state_dict(self: Any) -> Any:
        self._mercury.synchronize()
        return base.state_dict(self)

    def load_state_dict(self: Any, state: Any) -> None:
        self._mercury.synchronize()
        base.load_state_dict(self, state)
        self._mercury.loaded()

    def add_param_group(self: Any, group: dict[str, Any]) -> None:
        base.add_param_group(self, group)
        if "_mercury" in vars(self):
            try:
                self._mercury.add_parameters()
            except BaseException:
                del self.param_groups[-1]
                raise

    def synchronize(self: Any) -> None:
        """Waits until all gradients are summed, and all updates of the last step are done."""
        self._mercury.meet()

    def no_sync(self: Any) -> Any:
        """In this context gradients stay this worker's and add up."""
        return self._mercury.no_sync()

    def state(self: Any) -> Any:
        if "_mercury" in vars(self):
            self._mercury.finish_updates()
        return vars(self)["state"]

    def set_state(self: Any, value: Any) -> None:
        vars(self)["state"] = value

    def reduced(self: Any, _protocol: Any) -> Any:
        """A copy, or a pickled one, is nobody's, and needs nothing of ours."""
        self._mercury.synchronize()
        kept = {key: value for key, value in base.__getstate__(self).items() if key != "_mercury"}
        return base.__new__, (base,), kept

    own = (zero_grad, state_dict, load_state_dict, add_param_group, synchronize, no_sync)
    members: dict[str, Any] = {function.__name__: function for function in own}
    if in_parts and not hasattr(base, "state"):
        members["state"] = property(state, set_state)
    members["__reduce_ex__"] = reduced
    members["step"] = hooked = torch.optim.Optimizer.profile_hook_step(step)
    hooked.hooked = True
    # Schedulers that look for their own function in `step` are told that it is there.
    hooked._wrapped_by_lr_sched = hooked._with_counter = True
    return type(base.__name__, (base,), {**members, "__module__": base.__module__})
