"""What a checkpoint holds under MXNet: of gluon's Blocks and Trainers what all workers have alike,
and each worker's own: statistics, random numbers, Trainers without a distributed store and what no
other one trains, and whatever else has a `state_dict`.

MXNet's random numbers cannot be read, so each checkpoint seeds them anew, from themselves: a job
that goes on seeds them with the same number.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import mxnet as mx
import numpy as np
from mxnet import gluon

from mxnet_plugins import this_worker
from mxnet_plugins.errors import as_mxnet
from mxnet_plugins.kvstore import MercuryKVStore, stores
from pslite_ext import _core
from pslite_ext.errors import InvalidArgumentError, PsliteError
from pslite_ext.job import joining
from pslite_ext.saving import random_numbers
from pslite_ext.saving.checkpoint import Checkpoint
from pslite_ext.saving.exchange import Seat
from pslite_ext.saving.letting_in import grouped

_SEEDS = 2**31 - 1
_DEVICES = "devices/"  # of one worker's, each one's values
State = dict[str, Any]


def checkpoint(folder: str | Path, every: int, keep: int, objects: Mapping[str, Any]) -> Checkpoint:
    try:
        front = MXNetState(objects)
        _join(objects)
        seat = Seat(0, 1, 1)
        if (settings := joining.joined) is not None:
            seat = Seat(_core.rank(), int(settings.values["DMLC_NUM_WORKER"]), _core.places())
        return Checkpoint(folder, front, seat, every, keep)
    except PsliteError as error:
        raise as_mxnet(error) from None


def _join(objects: Mapping[str, Any]) -> None:
    """The job of a Trainer that has not made its store yet, which its first step does."""
    names = [_store_of(its) for its in objects.values() if isinstance(its, gluon.Trainer)]
    distributed = [name for name in names if "dist" in name]
    if distributed and this_worker.is_under_fabric():
        raise InvalidArgumentError(
            "checkpoint: under MLfabric the server has the model, and workers are not at the same "
            "step: save the net on one of them (net.save_parameters)"
        )
    if distributed and joining.joined is None:
        this_worker.join("async" in distributed[0])


class MXNetState:
    """Of the objects that a script names."""

    def __init__(self, objects: Mapping[str, Any]) -> None:
        if not objects:
            raise InvalidArgumentError(
                "checkpoint: name what is to be saved: checkpoint(folder, every=100, net=net, "
                "trainer=trainer)"
            )
        self._nets, self._trainers, self._others = {}, {}, {}
        for name, its in objects.items():
            if isinstance(its, gluon.Block):
                self._nets[name] = its
            elif isinstance(its, gluon.Trainer):
                self._trainers[name] = its
            elif hasattr(its, "state_dict") and hasattr(its, "load_state_dict"):
                self._others[name] = its
            else:
                raise InvalidArgumentError(
                    f"checkpoint: {name} is a {type(its).__name__}: gluon's Blocks and Trainers "
                    "are saved, and what has a state_dict and load_state_dict"
                )
        for name, key, parameter in self._parameters():
            if parameter._data is None:
                raise InvalidArgumentError(
                    f"checkpoint: {name}: {key} has no values yet: initialize it, and pass one "
                    "batch through the net if its shapes are not known"
                )

    def capture_shared(self) -> State:
        return dict(self._shared())

    def parts(self) -> Iterator[State]:
        return map(dict, grouped(self._shared(), lambda its: its[1].nbytes))

    def load_parts(self, files: Iterator[BinaryIO]) -> State:
        return {name: array for file in files for name, array in self.load(file).items()}

    def _shared(self) -> Iterator[tuple[str, Any]]:
        """By name; each array is copied when its turn comes."""
        return itertools.chain(
            [("json", _as_array(self._words()))],
            (
                (f"net/{name}/{key}", parameter._reduce().asnumpy())
                for name, key, parameter in self._parameters()
            ),
            ((f"trainer/{name}", _states(trainer)) for name, trainer in self._trainers.items()),
        )

    def standing(self) -> dict[str, Any]:
        mx.nd.waitall()  # so that nothing is under way
        return {
            "workers": {name: store.num_workers for name, store in self._our_stores()},
            "steps": {name: store.step_options.state() for name, store in self._our_stores()},
        }

    def stand(self, standing: Mapping[str, Any]) -> None:
        """Scripts divide by the number, and should do so as the others do in the next step."""
        for name, store in self._our_stores():
            store.tell_workers(standing["workers"].get(name, 0))
            if name in standing["steps"]:
                store.step_options.stand(standing["steps"][name])

    def _our_stores(self) -> Iterator[tuple[str, MercuryKVStore]]:
        for name, trainer in self._trainers.items():
            store = trainer._kvstore or trainer._kvstore_params["kvstore"]
            if isinstance(store, MercuryKVStore):
                yield name, store

    def missing(self) -> str:
        """A store has been made: of what, nobody knows."""
        named = [id(trainer._kvstore) for trainer in self._trainers.values()]
        named += [id(trainer._kvstore_params["kvstore"]) for trainer in self._trainers.values()]
        others = [store for store in list(stores) if id(store) not in named]
        return f"what a '{others[0].type}' store is for" if others else ""

    def capture_own(self) -> State:
        seed = int(mx.nd.random.randint(0, _SEEDS).asscalar())
        mx.random.seed(seed)
        words = {**self._words(), "random": random_numbers.capture(), "seed": seed}
        state: State = {"json": _as_array(words)}
        together = self._together()
        for name, key, parameter in self._parameters():
            if parameter.grad_req == "null" or id(parameter) not in together:
                state[f"net/{name}/{key}"] = parameter._reduce().asnumpy()
            if parameter.grad_req == "null" and len(parameter.list_ctx()) > 1:
                state[f"{_DEVICES}{name}/{key}"] = _of_devices(parameter)
        for name, trainer in self._trainers.items():
            if self._is_alone(trainer):
                state[f"trainer/{name}"] = _states(trainer)
        return state

    def _is_alone(self, trainer: Any) -> bool:
        return joining.joined is not None and "dist" not in _store_of(trainer)

    def _together(self) -> set[int]:
        """Parameters that all workers have alike; without a job, all."""
        if joining.joined is None:
            return {id(parameter) for _, _, parameter in self._parameters()}
        trained = (its._params for its in self._trainers.values() if not self._is_alone(its))
        return {id(parameter) for its in trained for parameter in its}

    def _parameters(self) -> Iterator[tuple[str, str, Any]]:
        for name, net in self._nets.items():
            for key, parameter in net._collect_params_with_prefix().items():
                yield name, key, parameter

    def _words(self) -> dict[str, Any]:
        others = {name: _as_words(name, its.state_dict()) for name, its in self._others.items()}
        return {"others": others, "scalers": {n: vars(its) for n, its in self._scalers()}}

    def _scalers(self) -> Iterator[tuple[str, Any]]:
        """Of AMP, by their Trainers' names."""
        for name, trainer in self._trainers.items():
            if (its := getattr(trainer, "_amp_loss_scaler", None)) is not None:
                yield name, its

    def dump(self, state: State, file: Any) -> None:
        np.savez(file, **state)

    def load(self, file: BinaryIO) -> State:
        with np.load(file, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}

    def restore(self, shared: State, mine: State | None) -> None:
        words = json.loads(bytes(shared["json"]) if mine is None else bytes(mine["json"]))
        arrays = {**shared, **(mine or {})}
        wanted = {f"net/{name}/{key}" for name, key, _ in self._parameters()}
        wanted |= {f"trainer/{name}" for name in self._trainers}
        there = {name for name in arrays if not name.startswith(_DEVICES)}
        if different := wanted ^ (there - {"json"}):
            raise InvalidArgumentError(f"only one of the two has {min(different)}")
        for name, key, parameter in self._parameters():
            _set(f"{name}: {key}", parameter, arrays[f"net/{name}/{key}"])
        for name, trainer in self._trainers.items():
            _load_states(trainer, arrays[f"trainer/{name}"])
        # By now a Trainer has given all workers worker 0's values.
        for name, key, parameter in self._parameters():
            if parameter.grad_req == "null":
                to = parameter.list_data()
                each = arrays.get(f"{_DEVICES}{name}/{key}", ())
                if len(each) != len(to):
                    each = [arrays[f"net/{name}/{key}"]] * len(to)
                for array, value in zip(to, each):
                    array[:] = value
        for name, its in self._others.items():
            its.load_state_dict(words["others"][name])
        for name, its in self._scalers():
            vars(its).update(words["scalers"].get(name, {}))
        if mine is not None:
            random_numbers.restore(words["random"])
            mx.random.seed(words["seed"])


def _store_of(trainer: Any) -> str:
    """Its name; empty if it has none."""
    store = trainer._kvstore_params["kvstore"]
    name = getattr(store, "type", store)
    return name if isinstance(name, str) else ""


def _of_devices(parameter: Any) -> Any:
    """Each device's values, which differ if they are statistics."""
    return np.stack([array.asnumpy() for array in parameter.list_data()])


def _as_array(words: dict[str, Any]) -> Any:
    return np.frombuffer(json.dumps(words).encode(), np.uint8)


def _as_words(name: str, state: Any) -> Any:
    try:
        words = json.loads(json.dumps(state))
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(
            f"checkpoint: {name}'s state_dict holds what is no number, string, list or dict "
            f"({error})"
        ) from None
    if not _is_same(state, words):
        raise InvalidArgumentError(
            f"checkpoint: {name}'s state_dict holds a tuple, or a key that is no string, which "
            "would come back as a list, or as a string"
        )
    return words


def _is_same(state: Any, words: Any) -> bool:
    if isinstance(state, dict) and isinstance(words, dict):
        return state.keys() == words.keys() and all(_is_same(state[k], words[k]) for k in words)
    if isinstance(state, list) and isinstance(words, list):
        return len(state) == len(words) and all(map(_is_same, state, words))
    return bool(state == words or state != state)  # NaN is not even itself


def _set(name: str, parameter: Any, value: Any) -> None:
    array = mx.np.array if mx.util.is_np_array() else mx.nd.array
    try:
        parameter.set_data(array(value, dtype=value.dtype))
    # MXNetError is a RuntimeError.
    except (AssertionError, RuntimeError, TypeError, ValueError) as error:
        raise InvalidArgumentError(f"{name} of shape {value.shape}: {error}") from None


def _states(trainer: Any) -> Any:
    with _file_in_memory() as path:
        trainer.save_states(path)
        return np.fromfile(path, np.uint8)


def _load_states(trainer: Any, states: Any) -> None:
    own = trainer._optimizer
    with _file_in_memory() as path:
        states.tofile(path)
        trainer.load_states(path)
    loaded = trainer._optimizer
    if type(own) is not type(loaded):
        return
    # The script may hold its optimizer, and the schedule in it, and change their options.
    if own.lr_scheduler is not None and type(own.lr_scheduler) is type(loaded.lr_scheduler):
        vars(own.lr_scheduler).update(vars(loaded.lr_scheduler))
        loaded.lr_scheduler = own.lr_scheduler
    vars(own).update(vars(loaded))
    trainer._optimizer = own
    for updater in (*trainer._updaters, getattr(trainer._kvstore, "_updater", None)):
        if getattr(updater, "optimizer", None) is not None:
            updater.optimizer = own


@contextmanager
def _file_in_memory() -> Iterator[str]:
    """Its name. No disk can be too full for it."""
    file = os.memfd_create("mercury-states")
    try:
        yield f"/proc/self/fd/{file}"
    finally:
        os.close(file)
