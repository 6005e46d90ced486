"""What a checkpoint holds under PyTorch: of modules and optimizers what all workers have alike, and
each worker's own buffers, random numbers, and whatever else has a `state_dict`.

In local steps, weights and the optimizer's state are each worker's own; the copies that all have
alike, and the outer optimizer's state, are saved in the optimizer's name. Where anything that is
trained is each worker's own, so is all that `wrap` does not train, for it may follow that.
"""

from __future__ import annotations

import copy
import io
import itertools
import re
import sys
import weakref
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import torch

from pslite_ext import _core
from pslite_ext.errors import InvalidArgumentError
from pslite_ext.saving import random_numbers
from pslite_ext.saving.checkpoint import Checkpoint
from pslite_ext.saving.exchange import Seat
from pslite_ext.saving.letting_in import grouped
from pslite_ext.torch import this_worker
from pslite_ext.torch.deltas import SharedParameter
from pslite_ext.torch.entries import wrapped
from pslite_ext.torch.local_training import LocalTraining
from pslite_ext.torch.modules import refuse_sharded
from pslite_ext.torch.optimizers import parameters_of

_NUMPY = "of numpy"  # the key of what stands for an array
_TENSOR = "of torch"  # of what stands for a tensor, in the first part
_ROWS, _COLUMNS = ("crow_indices", "col_indices"), ("ccol_indices", "row_indices")
_PARTS = {  # of sparse tensors
    torch.sparse_coo: ("_indices", "_values"),
    torch.sparse_csr: (*_ROWS, "values"),
    torch.sparse_bsr: (*_ROWS, "values"),
    torch.sparse_csc: (*_COLUMNS, "values"),
    torch.sparse_bsc: (*_COLUMNS, "values"),
}
_CLASS = re.compile(r"GLOBAL (\S+)")  # as torch names what it does not load
_MAPPINGS = (dict, OrderedDict, Counter)  # which come back as what they were
saved: weakref.WeakSet[Any] = weakref.WeakSet()  # what is in some checkpoint
trained: list[tuple[Any, Any]] = []  # each wrapped model, with its optimizer


def checkpoint(folder: str | Path, every: int, keep: int, objects: Mapping[str, Any]) -> Checkpoint:
    this_worker.refuse_under_fabric(
        "checkpoint: under MLfabric the server has the model, and workers are not at the same "
        "step: save model.state_dict() by torch.save, on one worker"
    )
    front = TorchState(objects)
    workers = this_worker.join()
    front.check_pairs()
    made = Checkpoint(folder, front, Seat(_core.rank(), workers, _core.places()), every, keep)
    this_worker.at_end(made.wait)
    return made


def _cloned(tensor: Any) -> Any:
    return tensor.detach().to("cpu", copy=True)


def _held(tensor: Any) -> Any:
    """Itself, unless more would be saved with it: all of what it is a view of."""
    its = tensor.detach()
    if type(its) is not torch.Tensor or its.layout is not torch.strided:
        return _cloned(its)
    alone = its.untyped_storage().nbytes() == its.numel() * its.element_size()
    return its if alone else its.clone()


def _copied(value: Any, tensor: Callable[[Any], Any] = _cloned) -> Any:
    """Nobody else's, and of kinds that torch loads safely, if they are known. `tensor` is for
    tensors."""
    if isinstance(value, torch.Tensor):
        return tensor(value)
    if type(value).__module__ == "numpy" and _has_a_name(value.dtype):
        return _of_numpy(value)
    if type(value) in (*_MAPPINGS, list, tuple):
        return _within(value, lambda its: _copied(its, tensor))
    return copy.deepcopy(value)


def _within(value: Any, change: Callable[[Any], Any]) -> Any:
    """The same, but for what is in it."""
    if type(value) in _MAPPINGS:
        return type(value)({key: change(its) for key, its in value.items()})
    if type(value) in (list, tuple):
        return type(value)(map(change, value))
    return value


def _copy_of(name: str, state: Any, tensor: Callable[[Any], Any]) -> Any:
    """Of a named object's state."""
    try:
        return _copied(state, tensor)
    except NotImplementedError as error:  # on "meta", say
        raise InvalidArgumentError(f"checkpoint: {name} cannot be saved: {error}") from error


def _has_a_name(dtype: Any) -> bool:
    """Which gives it back: that of an array with fields does not."""
    import numpy

    return not dtype.hasobject and bool(numpy.dtype(dtype.str) == dtype)


def _of_numpy(value: Any) -> Any:
    """An array or a number, as `_taken_out` knows it."""
    import numpy

    array = numpy.ascontiguousarray(value)
    held = torch.from_numpy(array.reshape(-1).view(numpy.uint8).copy())
    return {_NUMPY: held, "dtype": array.dtype.str, "shape": list(numpy.shape(value))}


def _taken_out(value: Any) -> Any:
    """The same again, of what was loaded."""
    if not isinstance(value, dict) or _NUMPY not in value:
        return _within(value, _taken_out)
    import numpy

    array = value[_NUMPY].numpy().view(numpy.dtype(value["dtype"])).reshape(value["shape"])
    return array.copy() if value["shape"] else array.reshape(())[()]


def _loaded(file: BinaryIO, what: str = "what was saved") -> Any:
    try:
        return torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:  # its own kinds differ between versions
        found = _CLASS.search(str(error))
        its = f"an object of {found[1]}" if found else "something"
        raise InvalidArgumentError(
            f"checkpoint: {what} holds {its} that torch does not load safely: let "
            "its state_dict give numbers, strings, lists, dicts, arrays and tensors, or allow it "
            "with torch.serialization.add_safe_globals"
        ) from error


def _loadable(state: dict[str, Any]) -> dict[str, Any]:
    """Each is tried: when the job goes on it would be too late."""
    file = io.BytesIO()
    try:
        torch.save(_without(state, []), file)
    except Exception as error:  # of functions, say
        raise InvalidArgumentError(
            f"checkpoint: what is to be saved cannot be written: {error}"
        ) from error
    file.seek(0)
    _loaded(file, "what is to be saved")
    return state


def _without(value: Any, tensors: list[Any]) -> Any:
    """Without its tensors, which are in the list then: quick to write and to load."""
    if not isinstance(value, torch.Tensor):
        return _within(value, lambda its: _without(its, tensors))
    tensors.append(value)
    return {_TENSOR: len(tensors) - 1}


def _with(value: Any, tensors: list[Any]) -> Any:
    """The same again, with them."""
    if not isinstance(value, dict) or _TENSOR not in value:
        return _within(value, lambda its: _with(its, tensors))
    return tensors[value[_TENSOR]]


def _bytes(tensor: Any) -> int:
    parts = [getattr(tensor, name)() for name in _PARTS.get(tensor.layout, ())]
    return sum(part.nbytes for part in parts or [tensor])


def _versions(state: Any) -> Any:
    """Of a module's parts, for those that load what older ones have saved."""
    return getattr(state, "_metadata", None)


def _local(optimizer: Any) -> LocalTraining | None:
    training = getattr(optimizer, "_mercury", None)
    return training if isinstance(training, LocalTraining) else None


def _is_summed(parameter: Any) -> bool:
    """By `wrap`."""
    return not isinstance(wrapped.get(id(parameter)), (SharedParameter, type(None)))


def _trains_apart(model: Any, optimizer: Any) -> bool:
    """Whether some of the model's weights become each worker's own."""
    learns = (p for p in model.parameters() if p.requires_grad)
    return _local(optimizer) is not None or not all(map(_is_summed, learns))


class _Owned:
    """What is each worker's. What was so once remains so: a script may freeze it for a while."""

    def __init__(self) -> None:
        self._apart = False
        self._any_apart()

    def _any_apart(self) -> bool:
        self._apart = self._apart or any(itertools.starmap(_trains_apart, trained))
        return self._apart

    def names(self, module: Any) -> set[str]:
        """In a module's state: what is no weight, and weights that may differ."""
        apart = self._any_apart()
        parameters = module.named_parameters(remove_duplicate=False)
        alike = {name for name, its in parameters if _is_summed(its) or not apart}
        return {name for name in module.state_dict(keep_vars=True) if name not in alike}

    def has(self, optimizer: Any) -> bool:
        """Whether its state is."""
        if hasattr(optimizer, "_mercury"):
            return _local(optimizer) is not None
        return self._any_apart()


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
        self._owned = _Owned()
        self._modules, self._optimizers, self._others = {}, {}, {}
        for name, its in objects.items():
            if isinstance(its, torch.nn.Module):
                refuse_sharded(its, f"checkpoint: {name}")
                self._modules[name] = its
            elif isinstance(its, torch.optim.Optimizer):
                self._optimizers[name] = its
            else:
                self._others[name] = its
        for its in (*self._modules.values(), *self._optimizers.values()):
            saved.add(its)

    def capture_shared(self) -> dict[str, Any]:
        return self._shared(_cloned)

    def parts(self) -> Iterator[Any]:
        tensors: list[Any] = []
        first = _without(self._shared(_held), tensors)
        return itertools.chain([first], grouped(tensors, _bytes))

    def load_parts(self, files: Iterator[BinaryIO]) -> Any:
        first = _loaded(next(files))
        tensors = [tensor for file in files for tensor in _loaded(file)]
        return _taken_out(_with(first, tensors))

    def _shared(self, tensor: Callable[[Any], Any]) -> dict[str, Any]:
        alike, versions = {}, {}
        for name, its in self._modules.items():
            own, state = self._owned.names(its), its.state_dict()
            weights = {key: value for key, value in state.items() if key not in own}
            alike[name] = _copy_of(name, weights, tensor)
            versions[name] = _copied(_versions(state))
        for name, its in self._optimizers.items():
            theirs: Any = _local(its) or (None if self._owned.has(its) else its)
            alike[name] = _copy_of(name, {} if theirs is None else theirs.state_dict(), tensor)
        state = {"alike": alike, "own": self._own(tensor), "versions": versions}
        return _loadable(state)

    def capture_own(self) -> dict[str, Any]:
        devices = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
        random = {**random_numbers.capture(), "torch": torch.get_rng_state(), "cuda": devices}
        return _loadable({"own": self._own(_cloned), "random": _copied(random)})

    def _own(self, tensor: Callable[[Any], Any]) -> dict[str, Any]:
        for training in filter(None, (_local(optimizer) for _, optimizer in trained)):
            training.check_own()
        own = {}
        for name, its in self._modules.items():
            state = its.state_dict()
            mine = {key: state[key] for key in self._owned.names(its)}
            own[name] = _copy_of(name, mine, tensor)
        optimizers = {key: its for key, its in self._optimizers.items() if self._owned.has(its)}
        for name, its in {**optimizers, **self._others}.items():
            own[name] = _copy_of(name, its.state_dict(), tensor)
        return own

    def dump(self, state: Any, file: Any) -> None:
        torch.save(state, file)

    def load(self, file: BinaryIO) -> Any:
        return _taken_out(_loaded(file))

    def restore(self, shared: Any, mine: Any) -> None:
        alike, own = shared["alike"], (mine or shared)["own"]
        versions = shared.get("versions", {})  # older files have none
        objects = {**self._modules, **self._optimizers, **self._others}
        own_optimizers = {*own} & {*self._optimizers}
        if {*alike} != {*self._modules, *self._optimizers} or (
            {*own} - own_optimizers != {*self._modules, *self._others}
        ):
            raise InvalidArgumentError(
                f"it has {', '.join(sorted({*alike, *own}))}, and the script saves "
                f"{', '.join(sorted(objects))}"
            )
        ours = {name: its for name, its in self._optimizers.items() if hasattr(its, "_mercury")}
        local = {name for name, its in ours.items() if _local(its)}
        if others := (own_optimizers & {*ours}) ^ local:
            ways = ("mercury.local_steps", "mercury.wrap")
            before, now = ways if others & own_optimizers else ways[::-1]
            raise InvalidArgumentError(
                f"{', '.join(sorted(others))} was trained by {before} then, and is by {now} now"
            )
        for name, its in objects.items():
            try:
                parts = alike.get(name, {}), own.get(name, {})
                self._restore_one(name, its, *parts, versions.get(name))
            except (RuntimeError, ValueError, KeyError, TypeError) as error:
                raise InvalidArgumentError(f"{name}: {error}") from None
        if mine is not None:
            self._restore_random(mine["random"])

    def _restore_one(self, name: str, its: Any, alike: Any, own: Any, versions: Any) -> None:
        if name in self._modules:
            state: Any = OrderedDict({**alike, **own})
            state._metadata = versions or _versions(its.state_dict())
            its.load_state_dict(state)
        elif training := _local(its):
            its.load_state_dict(own)
            training.load_state_dict(alike)
        else:
            its.load_state_dict(own or alike)

    def check_pairs(self) -> None:
        """A model and its optimizer, of which the script names one alone."""
        inside = {id(p) for module in self._modules.values() for p in module.parameters()}
        named = {id(its) for its in self._optimizers.values()}
        for model, optimizer in trained:
            has_model = any(id(p) in inside for p in parameters_of(optimizer))
            if has_model == (id(optimizer) in named):
                continue
            left, other = (optimizer, "model") if has_model else (model, "optimizer")
            its = f"checkpoint: the {type(left).__name__} is not named, and its {other} is: "
            if _local(optimizer):
                raise InvalidArgumentError(f"{its}in local steps both are needed")
            if _core.rank() == 0:
                what = "it is not saved, and begins anew when the job goes on"
                print(f"mercury: {its}{what}", file=sys.stderr)

    def standing(self) -> dict[str, Any]:
        """By the optimizer's name."""
        return {
            name: its._mercury.standing()
            for name, its in self._optimizers.items()
            if hasattr(its, "_mercury")
        }

    def stand(self, standing: Mapping[str, Any]) -> None:
        for name, its in self._optimizers.items():
            if hasattr(its, "_mercury"):
                its._mercury.stand(standing[name])

    def missing(self) -> str:
        """What is trained and not saved."""
        named = [id(its) for its in (*self._modules.values(), *self._optimizers.values())]
        for model, optimizer in trained:
            for its in (model, optimizer):
                if id(its) not in named:
                    return f"a {type(its).__name__} that is wrapped"
        return ""

    @staticmethod
    def _restore_random(state: dict[str, Any]) -> None:
        random_numbers.restore(state)
        torch.set_rng_state(state["torch"])
        devices = state["cuda"]
        if devices and torch.cuda.is_available() and len(devices) == torch.cuda.device_count():
            torch.cuda.set_rng_state_all(devices)
