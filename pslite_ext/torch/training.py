"""A wrapped model's training: gradients out as they appear, updates before they are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from pslite_ext import _core
from pslite_ext.errors import InvalidArgumentError
from pslite_ext.torch.alone import check_step
from pslite_ext.torch.order import BeforeForward, OrderOfUse
from pslite_ext.torch.slots import OwnParameters, Slot, SummedParameter, raw_grad
from pslite_ext.torch.staging import way_from
from pslite_ext.torch.updates import Part, Updates, parts_of
from pslite_ext.torch.values import memory, wire_key

USED_PRIORITY = 1  # above all parameters: it is short


class Training:
    """One model and its optimizer. All of it belongs to the thread that trains."""

    def __init__(
        self,
        number: int,
        model: Any,
        optimizer: Any,
        names: dict[Any, str],
        workers: int,
        step: Callable[[Any], Any],
    ) -> None:
        self._number, self._workers = number, workers
        self._optimizer = optimizer
        self._updates = Updates(optimizer, step)
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        ways = {device: way_from(device) for device in {p.device for p in parameters}}
        self._slots = {
            p: Slot(names[p], p, ways[p.device], self._update, self._is_used) for p in parameters
        }
        self._order = OrderOfUse(list(self._slots.values()))
        self._places: dict[Slot, int] = {}
        self._parts: list[Part] = []
        self._used_tensor: _core.Tensor | None = None
        self._used: _core.Work | None = None
        self._counts: Any = None  # of the last backward, by place: workers that had a gradient
        self._sent: dict[Slot, None] = {}  # in the backward under way
        self._complete_since_step = False
        self._unseen: list[Slot] = []
        self._alone = False
        self._hook_modules(model)
        for parameter, slot in self._slots.items():
            self._hook_parameter(parameter, slot)

    # --- hooks ------------------------------------------------------------------------------------

    def _hook_modules(self, model: Any) -> None:
        compiled: set[Any] = set()
        for module in model.modules():  # whoever holds a module comes before it
            module.register_state_dict_pre_hook(BeforeForward(self.synchronize))
            own = vars(module)["_parameters"] = OwnParameters(vars(module)["_parameters"])
            waits_for: Iterable[Any] = own.values()
            if module in compiled:
                waits_for = ()  # all that is in it has been waited for before it begins
            elif hasattr(module, "_orig_mod"):  # torch.compile's: one graph, one wait
                compiled.update(module.modules())
                waits_for = module.parameters()
            slots = [self._slots[p] for p in waits_for if p in self._slots]
            if slots or module is model:
                before = self._before(slots, module is model)
                module.register_forward_pre_hook(before, prepend=True)

    def _before(self, own: list[Slot], whole: bool) -> BeforeForward:
        def call() -> None:
            self._order.note(own)
            if whole:
                self._sent = {}  # a backward that raised has not come to its end
                self._updates.wait_for(self._unseen)
            self._updates.wait_for(own)

        return BeforeForward(call)

    def _hook_parameter(self, parameter: Any, slot: Slot) -> None:
        parameter.__class__ = SummedParameter
        parameter._mercury_slot = slot
        if not parameter.requires_grad:
            return  # should it learn later, step() sends its gradient
        parameter.register_hook(lambda _grad: self._before_gradient(slot))
        parameter.register_post_accumulate_grad_hook(lambda p: self._on_gradient(slot, p))

    @staticmethod
    def _before_gradient(slot: Slot) -> None:
        """The gradient is about to be added to one that may still be under way."""
        if slot.stepped:
            raise InvalidArgumentError(
                f"parameter '{slot.name}' was used before its update was done: call "
                "optimizer.synchronize() before code that uses it without calling its module"
            )
        slot.wait()

    def _on_gradient(self, slot: Slot, parameter: Any) -> None:
        if self._alone:
            return
        if not self._sent:
            torch.autograd.Variable._execution_engine.queue_callback(self._backward_over)
        self._sent[slot] = None
        self._send(slot, raw_grad(parameter))

    def _backward_over(self) -> None:
        missing = [slot for slot in self._slots.values() if slot not in self._sent]
        self._sent = {}
        self._complete(missing)

    # --- a step -----------------------------------------------------------------------------------

    def _send(self, slot: Slot, grad: Any) -> None:
        self._begin()
        slot.send(grad, self._workers)

    def _begin(self) -> None:
        """With the first gradient: by now a forward has shown the order."""
        if self._order.agreed:
            return
        self._unseen = self._order.unseen
        ordered = self._order.agree(self._number)
        keys = [wire_key(self._number, "sum", slot.name) for slot in ordered]
        _core.announce([(k, s.name, -i) for i, (k, s) in enumerate(zip(keys, ordered))])
        for index, (key, slot) in enumerate(zip(keys, ordered)):
            slot.priority = -index
            shape, dtype = slot.parameter.shape, str(slot.parameter.dtype).removeprefix("torch.")
            if slot.parameter.numel():
                label = f"parameter '{slot.name}'"
                slot.tensor = _core.Tensor(key, slot.name, dtype, shape, label=label)
        self._places = {slot: index for index, slot in enumerate(ordered)}
        used = wire_key(self._number, "used", "")
        self._used_tensor = _core.Tensor(used, "used parameters", "int32", [len(ordered)])
        groups = self._optimizer.param_groups
        group_of = {p: i for i, group in enumerate(groups) for p in group["params"]}
        self._parts = parts_of(ordered, lambda slot: group_of[slot.parameter])

    def step(self) -> None:
        """Notes the step; updates follow when sums are in."""
        slots = self._slots.values()
        self._updates.finish()
        has_gradient = any(s.total is not None or raw_grad(s.parameter) is not None for s in slots)
        check_step(self._optimizer, self._slots.keys(), has_gradient)
        if not self._complete_since_step:  # all was accumulated alone, or set by hand
            self._complete([slot for slot in slots if slot.total is None])
        self._complete_since_step = False
        self._updates.begin(self._parts)
        if getattr(self._optimizer, "found_inf", None) is not None:
            self._updates.finish()  # GradScaler's words to a fused optimizer hold for this call

    def _complete(self, missing: Sequence[Slot]) -> None:
        """Every worker takes part in every sum, and says of what it had a gradient.

        After each backward: what `.grad` is from then on is the same on all workers.
        """
        self._begin()
        for slot in missing:
            slot.settle()
            grad = raw_grad(slot.parameter)
            if grad is not None:
                slot.send(grad, self._workers)
        idle = [slot for slot in missing if raw_grad(slot.parameter) is None]
        assert self._used_tensor is not None
        if self._used is not None:
            self._used.wait()  # a tensor has one sum at a time
        out = set(idle)
        self._counts = torch.tensor([int(s not in out) for s in self._places], dtype=torch.int32)
        self._used = self._used_tensor.sum_memory(memory(self._counts), USED_PRIORITY)
        for slot in idle:
            slot.send_zeros(self._workers)
        self._complete_since_step = True

    def _is_used(self, slot: Slot) -> bool:
        assert self._used is not None
        self._used.wait()
        return bool(self._counts[self._places[slot]] > 0)

    def _update(self, slot: Slot) -> None:
        self._updates.wait_for([slot])

    # --- for scripts ------------------------------------------------------------------------------

    def synchronize(self) -> None:
        """Waits for all sums that are under way, and does all updates that are left."""
        for slot in self._slots.values():
            slot.wait()
        self._updates.finish()
        if self._used is not None:
            self._used.wait()

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Gradients stay this worker's, and add up; the next backward outside sends the whole."""
        before, self._alone = self._alone, True
        try:
            yield
        finally:
            self._alone = before

    def forget_gradients(self) -> None:
        for group in self._optimizer.param_groups:
            for parameter in group["params"]:
                parameter.grad = None
