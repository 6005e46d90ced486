"""`local_steps`: a model and its optimizer, checked, cut into fragments, and in the job.

Whatever can be refused without the other workers is refused before the job hears of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from itertools import filterfalse, groupby
from typing import Any

import torch

from pslite_ext import _core
from pslite_ext.errors import InvalidArgumentError
from pslite_ext.job.wire import Wire, codec_for
from pslite_ext.torch import this_worker
from pslite_ext.torch.checks import check_pair, check_time, say_not_given
from pslite_ext.torch.deltas import Delta, SharedParameter
from pslite_ext.torch.entries import wrapped
from pslite_ext.torch.fragment_schedule import FragmentSchedule, check_alpha, refuse
from pslite_ext.torch.fragments import Fragment, cut, default_outer, outer_of
from pslite_ext.torch.local_agreement import (
    BY,
    LocalArguments,
    claim_arguments,
    claim_outer,
    claim_parts,
)
from pslite_ext.torch.local_training import LocalTraining
from pslite_ext.torch.modules import Hook, is_scripted
from pslite_ext.torch.optimizers import parameters_of
from pslite_ext.torch.parcels import numbered
from pslite_ext.torch.saved_state import trained
from pslite_ext.torch.staging import Sender, sender_from
from pslite_ext.torch.values import take_from_worker_0, type_name, wire_key
from pslite_ext.torch.wrapping import models
from pslite_ext.wire_words import AUTO


def _check_hooks(optimizer: Any) -> None:
    hooked = getattr(type(optimizer).step, "hooked", False)
    if not (hooked and hasattr(optimizer, "_optimizer_step_post_hooks")):
        refuse(
            f"the step of {type(optimizer).__name__} calls no hooks, so its steps cannot be "
            "counted: its class must call torch.optim.Optimizer.__init__"
        )


def _count(fragments: Any) -> Any:
    """How many there are; what is no number is for the schedule to refuse."""
    if isinstance(fragments, torch.nn.Module) and not isinstance(fragments, torch.nn.ModuleList):
        refuse(
            f"fragments is a {type(fragments).__name__}; a number or a list of modules is needed"
        )
    if not isinstance(fragments, (list, tuple, torch.nn.ModuleList)):
        return fragments
    for number, module in enumerate(fragments):
        if not isinstance(module, torch.nn.Module):
            refuse(f"fragments[{number}] is a {type(module).__name__}; a module is needed")
    return len(fragments)


def _check_outer(outer: Any) -> Callable[[list[Any]], Any]:
    if outer is None:
        return default_outer
    if isinstance(outer, torch.optim.Optimizer):
        refuse(
            "outer is an optimizer, but it is to be one of tensors that do not exist yet: give a "
            "function that makes it of a list of them, such as "
            "lambda copies: torch.optim.SGD(copies, lr=0.7, momentum=0.9, nesterov=True)"
        )
    if not callable(outer):
        refuse(f"outer is {outer!r}; a function that makes an optimizer is needed")
    made: Callable[[list[Any]], Any] = outer
    return made


def _codecs(wire: Wire, names: dict[Any, str], who: str) -> dict[Any, str]:
    made = {}
    for parameter, name in names.items():
        word = wire.word(name)
        if word == AUTO:
            refuse(f"{who} is '{AUTO}', which needs gradients at every step: name a codec")
        made[parameter] = codec_for(word, type_name(parameter.dtype), parameter.shape)
    return made


def _deltas(
    members: Sequence[SharedParameter], senders: dict[Any, Sender], workers: int
) -> list[Delta]:
    pairs = zip(numbered(members), members)
    together = [[member for _, member in its] for _, its in groupby(pairs, lambda pair: pair[0])]
    return [Delta(its, senders.get(its[0].device), workers) for its in together]


def local_steps(
    model: Any,
    optimizer: Any,
    outer: Any,
    every: Any,
    fragments: Any,
    delay: Any,
    alpha: Any,
    wire: Any,
) -> tuple[Any, Any]:
    all_names = check_pair(model, optimizer, BY)
    check_time(model, optimizer, BY)
    _check_hooks(optimizer)
    schedule = FragmentSchedule(every, _count(fragments), delay)
    arguments = LocalArguments(every, schedule.fragments, delay, check_alpha(alpha))
    make = _check_outer(outer)
    given = set(parameters_of(optimizer))
    names = {p: name for p, name in all_names.items() if p in given}
    parts = cut(names, fragments)
    Wire(wire).check((name, type_name(p.dtype)) for p, name in names.items())
    _codecs(Wire(wire), names, "wire")

    workers = this_worker.join()
    codecs = _codecs(Wire(wire, _core.wire()), names, "MERCURY_WIRE")
    alone = workers == 1 == _core.places()
    number = next(models)
    if not alone:
        if _core.rank() == 0:
            say_not_given(optimizer, all_names, BY)
        claim_arguments(number, arguments)
        claim_parts(number, parts, names, codecs.__getitem__, optimizer)
        if _core.outside() is None:  # else it is given today's, once it is let in
            take_from_worker_0(number, "values", [*all_names, *model.buffers()])
    senders = {} if alone else {p.device: sender_from(p.device) for p in names}
    made = []
    for index, part in enumerate(parts):
        members = [SharedParameter(names[p], p, codecs[p]) for p in part]
        own = outer_of(make, [member.shared for member in members])
        made.append(Fragment(index, _deltas(members, senders, workers), own))
    if not alone:
        claim_outer(number, [fragment.outer for fragment in made])
    for fragment in made:
        for delta in fragment.deltas:
            delta.announced(wire_key(number, "delta", delta.name))
    training = LocalTraining(number, optimizer, made, schedule, arguments, 0 if alone else workers)
    wrapped.update((id(m.parameter), m) for fragment in made for m in fragment.members)
    for module in filterfalse(is_scripted, model.modules()):
        module._register_load_state_dict_pre_hook(Hook(training.loads))
    optimizer._mercury = training
    trained.append((model, optimizer))
    this_worker.at_end(training.finish)
    return model, optimizer


def shared_weights(model: Any) -> AbstractContextManager[None]:
    for other, optimizer in trained:
        if other is model and isinstance(optimizer._mercury, LocalTraining):
            return optimizer._mercury.shared()
    raise InvalidArgumentError(
        "mercury.shared_weights: this model was not given to mercury.local_steps"
    )
