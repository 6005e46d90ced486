"""A fragment of a model in local steps: its parameters, and the outer optimizer of their copies.

The average of all workers' deltas takes the place of a gradient in the outer optimizer's step on
the copies. Each worker makes that step itself: from the same bits to the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import torch

from pslite_ext.torch.deltas import Delta, SharedParameter
from pslite_ext.torch.fragment_schedule import cut_in_order, refuse
from pslite_ext.torch.optimizers import parameters_of, why_not

# Of DiLoCo's paper.
OUTER_RATE, OUTER_MOMENTUM = 0.7, 0.9


def default_outer(copies: list[Any]) -> Any:
    return torch.optim.SGD(copies, lr=OUTER_RATE, momentum=OUTER_MOMENTUM, nesterov=True)


def outer_of(make: Callable[[list[Any]], Any], copies: list[Any]) -> Any:
    """What the script's function makes, checked."""
    made = make(copies)
    if not isinstance(made, torch.optim.Optimizer):
        refuse(f"outer returned a {type(made).__name__}; a torch.optim.Optimizer is needed")
    if reason := why_not(made):
        refuse(f"outer: {reason}")
    given = parameters_of(made)
    if sorted(map(id, given)) != sorted(map(id, copies)):
        refuse("outer returned an optimizer of other tensors: give it those that outer is given")
    return made


def cut(names: dict[Any, str], fragments: Any) -> list[list[Any]]:
    """The parameters of each: of so many parts of the model in order, or of these modules."""
    if isinstance(fragments, int):
        parameters = list(names)
        sizes = [p.numel() * p.element_size() for p in parameters]
        parts = cut_in_order(sizes, fragments)
        return [[parameters[i] for i in part] for part in parts]
    left, made = dict(names), []
    for number, module in enumerate(fragments):
        own = [p for p in module.parameters() if left.pop(p, None) is not None]
        if not own:
            refuse(f"fragments[{number}] has no parameter of the optimizer's that is only there")
        made.append(own)
    if left:
        refuse(f"parameter '{next(iter(left.values()))}' is in none of the fragments")
    return made


class Fragment:
    def __init__(self, number: int, deltas: Sequence[Delta], outer: Any) -> None:
        self.number = number
        self.outer = outer
        self.deltas = deltas
        self.members: list[SharedParameter] = list(chain(*(delta.members for delta in deltas)))

    def send(self, priority: int) -> None:
        for member in self.members:
            member.check()
        with torch.no_grad():
            for delta in self.deltas:
                delta.send(priority)

    def wait(self) -> None:
        with torch.no_grad():
            for delta in self.deltas:
                delta.wait()

    def apply(self, alpha: float) -> None:
        """The outer step; then the parameters are the copies and `alpha` of what they were."""
        with torch.no_grad():
            averages = list(chain(*(delta.take() for delta in self.deltas)))
        for member, average in zip(self.members, averages):
            member.shared.grad = average
        self.outer.step()
        with torch.no_grad():
            for member in self.members:
                member.shared.grad = None
                own, shared = member.parameter, member.shared
                own.copy_(torch.lerp(shared, own, alpha) if alpha else shared)

    # --- for checkpoints --------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        return {
            "shared": {member.name: member.shared.detach() for member in self.members},
            "outer": self.outer.state_dict(),
            "received": [delta.received() for delta in self.deltas],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        with torch.no_grad():
            for member in self.members:
                member.shared.copy_(state["shared"][member.name])
        self.outer.load_state_dict(state["outer"])
        for delta, received in zip(self.deltas, state["received"]):
            delta.restore(received)

    def divide_by(self, workers: int) -> None:
        """As the others do, of a worker that comes while the job runs."""
        for delta in self.deltas:
            delta.workers = workers
