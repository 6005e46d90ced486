"""What all workers must have in common, compared: as a model is wrapped, and as training goes on.

Each backward ends with a short sum: which parameters had a gradient on how many workers, and a few
numbers that stand for the optimizer's options and for the checkpoints that were loaded. Where
these differ, all workers learn it from the same sum, and then say in words what they have.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch

from pslite_ext import _core
from pslite_ext.errors import InvalidArgumentError
from pslite_ext.torch.entries import ParameterEntry, entry_of
from pslite_ext.torch.layouts import order_of
from pslite_ext.torch.values import memory, type_name, wire_key
from pslite_ext.torch.words import NUMBERS, said_alike, words_of

USED_PRIORITY = 1  # above all parameters: it is short
VALUES_MAX = 8  # of an option that is compared at every step
TIMES = 2  # that follow the words
TICKS, TICKS_MAX = 10_000, 1_000_000  # a second; of one of 2000 workers: their sum is an int32
_PLAIN = (bool, int, float, complex, str, type(None))


def claim_model(
    number: int, which: str, names: dict[Any, str], codec: Callable[[Any], str], optimizer: Any
) -> None:
    """All workers train the same model with the same kind of optimizer, and send its gradients
    alike, or hear what differs."""
    said = [
        (described(name, parameter, codec(parameter)), "parameter")
        for parameter, name in names.items()
    ]
    said.append((type(optimizer).__name__, "optimizer"))
    _core.claim_model(wire_key(number, "model", which), said)


def claim_optimizer(number: int, names: dict[Any, str], optimizer: Any) -> None:
    """The same options and state, or hear what differs."""
    claim_alike(wire_key(number, "optimizer", ""), settings_of(names, optimizer))


def settings_of(names: dict[Any, str], optimizer: Any) -> list[str]:
    """Its options and its state, in words."""
    groups = optimizer.param_groups
    options = [line for index in range(len(groups)) for line in options_of(groups, index)]
    return [*options, *_state(names, optimizer)]


def claim_alike(subject: int, said: Sequence[str]) -> None:
    """Of optimizers: all workers say the same, or hear what differs."""
    try:
        _core.claim_model(subject, [(line, "of the optimizer") for line in said])
    except InvalidArgumentError as error:
        raise InvalidArgumentError(
            "all workers' optimizers must have the same options and state, and load the same "
            f"checkpoint, and all must make the same steps: {error}"
        ) from None


def described(name: str, parameter: Any, codec: str) -> str:
    sent = type_name(parameter.dtype) if codec == "none" else codec
    shape = str(tuple(parameter.shape))
    words = (name, str(parameter.dtype), shape, order_of(parameter), f"sent as {sent}")
    return " ".join(word for word in words if word)


def options_of(groups: Sequence[dict[str, Any]], index: int) -> list[str]:
    return [f"{name} = {value}" for name, value in told_to(groups, index).items()]


def told_to(groups: Sequence[dict[str, Any]], index: int) -> dict[str, str]:
    where = f" in group {index}" if len(groups) > 1 else ""
    made = {}
    for key, value in groups[index].items():
        values = value if isinstance(value, (tuple, list)) else (value,)
        if key in ("params", "param_names") or len(values) > VALUES_MAX:
            continue
        if all(isinstance(v, _PLAIN) or _is_number(v) for v in values):
            made[key + where] = ", ".join(map(_text, values))
    return made


def _is_number(value: Any) -> bool:
    """What can be read without waiting for a device."""
    return isinstance(value, torch.Tensor) and value.numel() == 1 and value.device.type == "cpu"


def _text(value: Any) -> str:
    """Processors of different kinds may differ in a number's last digits."""
    if isinstance(value, torch.Tensor):
        value = value.item()
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _state(names: dict[Any, str], optimizer: Any) -> Iterator[str]:
    for parameter, state in optimizer.state.items():
        of = names.get(parameter, "") if isinstance(parameter, torch.Tensor) else ""
        for key, value in state.items() if isinstance(state, dict) else ():
            if isinstance(value, torch.Tensor):
                yield f"{key} of '{of}' with digest {digest([value])}"
            elif isinstance(value, _PLAIN):
                yield f"{key} of '{of}' = {_text(value)}"


def _with_memory(tensors: Iterable[Any]) -> Iterator[Any]:
    """In the place of tensors that are made of others, these."""
    for tensor in tensors:
        if hasattr(tensor, "__tensor_flatten__"):
            names, _ = tensor.__tensor_flatten__()
            yield from _with_memory(getattr(tensor, name) for name in names)
        elif tensor.device.type != "meta":
            yield tensor


def digest(tensors: Iterable[Any]) -> str:
    """Of their values, in the usual order."""
    said = hashlib.blake2b(digest_size=8)
    for tensor in _with_memory(tensors):
        dense = tensor.detach().to_dense() if tensor.layout is not torch.strided else tensor
        values = dense.detach().resolve_conj().resolve_neg().cpu().contiguous()
        size = values.numel() * values.element_size()
        said.update((ctypes.c_char * size).from_address(values.data_ptr()) if size else b"")
    return said.hexdigest()


def counts(workers: int) -> tuple[int, int]:
    """Of how many workers a sum may be, at most and at least, where there were so many at first."""
    return max(workers, _core.places()), 1 if _core.elastic() else workers


def difference(number: int, when: str, said: Sequence[str]) -> InvalidArgumentError:
    """What workers differ in, all of whom have learnt that they do."""
    try:
        claim_alike(wire_key(number, "differs", when), said)
    except InvalidArgumentError as error:
        return error
    return InvalidArgumentError(
        "the workers' optimizers differ, or have loaded other checkpoints; this one's last "
        "options: " + "; ".join(said)
    )


class Agreement:
    """Of one model's training, from its first gradient on."""

    def __init__(
        self,
        number: int,
        names: dict[Any, str],
        optimizer: Any,
        workers: int,
        heard: Callable[[float, float], None],
    ) -> None:
        """`heard`: of each backward, how long it and what came before it took, and how much of
        that was waiting, as an average of all workers."""
        self._number, self._names, self._optimizer = number, names, optimizer
        self._workers, self._heard = workers, heard
        self._places: dict[ParameterEntry, int] = {}
        self._tensor: _core.Tensor | None = None
        self._work: _core.Work | None = None
        self._sums: Any = None  # of the last backward
        self._said: list[str] = []
        self._backwards = 0
        self._checkpoint = "no checkpoint since it was wrapped"
        self._has_loaded = False
        self._failure: InvalidArgumentError | None = None

    def start(self, which: int, entries: Sequence[ParameterEntry]) -> None:
        """With an order that all workers have agreed on."""
        self._places = {entry: place for place, entry in enumerate(entries)}
        key = wire_key(self._number, "used", str(which))
        length = len(entries) + NUMBERS + TIMES
        self._tensor = _core.Tensor(key, "used parameters", "int32", [length])

    def loaded(self) -> None:
        """The model or the optimizer has loaded a checkpoint, here."""
        self._has_loaded = True

    def begin(self, idle: set[ParameterEntry], made: str, took_s: float, waited_s: float) -> None:
        """At the end of a backward, which these entries had no gradient in. `made`: how much has
        been done so far."""
        self.wait()
        groups = self._optimizer.param_groups
        self._said = [*options_of(groups, self._backwards % len(groups)), self._loaded(), made]
        self._backwards += 1
        had = (
            [int(entry not in idle) for entry in self._places] if idle else [1] * len(self._places)
        )
        times = [min(round(TICKS * t), TICKS_MAX) for t in (took_s, waited_s)]
        self._sums = torch.tensor(
            [*had, *words_of("; ".join(self._said)), *times], dtype=torch.int32, device="cpu"
        )
        assert self._tensor is not None
        self._work = self._tensor.sum_memory(memory(self._sums), USED_PRIORITY)

    def wait(self) -> None:
        """Until the last backward's sum is here; raises what workers have not in common."""
        if self._failure is not None:
            raise self._failure
        if self._work is None:
            return
        self._work.wait()
        self._work = None
        *words, took, waited = self._sums[len(self._places) :].tolist()
        workers = said_alike(words, "; ".join(self._said), *counts(self._workers))
        if not workers:
            self._failure = difference(self._number, f"backward {self._backwards}", self._said)
            raise self._failure
        ticks = TICKS * workers
        self._heard(took / ticks, waited / ticks)

    def state(self) -> dict[str, Any]:
        """What a worker that comes later has in common with the others."""
        return {"backwards": self._backwards, "checkpoint": self._checkpoint}

    def stand(self, state: Mapping[str, Any]) -> None:
        """What it has loaded to get there is no checkpoint of its own."""
        self._backwards, self._checkpoint = state["backwards"], state["checkpoint"]
        self._has_loaded = False

    def is_used(self, entry: ParameterEntry) -> bool:
        """Whether any worker had a gradient."""
        self.wait()
        return bool(self._sums[self._places[entry]] > 0)

    def _loaded(self) -> str:
        if self._has_loaded:
            self._has_loaded = False
            state = "".join(_state(self._names, self._optimizer))
            own = torch.tensor(list(state.encode()), dtype=torch.uint8, device="cpu")
            # What learns without the optimizer is each worker's own, and what is frozen may follow.
            apart = any(p.requires_grad and not entry_of(p) for p in self._names)
            alike = [p for p in self._names if entry_of(p) or not apart]
            both = digest([*alike, own])
            self._checkpoint = f"loaded a checkpoint with digest {both}"
        return self._checkpoint
