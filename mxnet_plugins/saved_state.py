"""What a checkpoint holds under MXNet: of gluon's Blocks and Trainers what all workers have alike,
and each worker's own statistics, random numbers, and whatever else has a `state_dict`.

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
    names = [
        getattr(store, "type", store)
        for its in objects.values()
        if isinstance(its, gluon.Trainer)
        for store in [its._kvstore_params["kvstore"]]
    ]
    distributed = [name for name in names if isinstance(name, str) and "dist" in name]
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
        words = json.dumps(self._of_others()).encode()
        return itertools.chain(
            [("json", np.frombuffer(words, np.uint8))],
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
        words = {"others": self._of_others(), "random": random_numbers.capture(), "seed": seed}
        state: State = {"json": np.frombuffer(json.dumps(words).encode(), np.uint8)}
        for name, key, parameter in self._parameters():
            if parameter.grad_req == "null":  # statistics, and what does not learn
                state[f"net/{name}/{key}"] = parameter._reduce().asnumpy()
        return state

    def _parameters(self) -> Iterator[tuple[str, str, Any]]:
        for name, net in self._nets.items():
            for key, parameter in net._collect_params_with_prefix().items():
                yield name, key, parameter

    def _of_others(self) -> dict[str, Any]:
        return {name: _as_words(name, its.state_dict()) for name, its in self._others.items()}

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
        if different := wanted ^ ({*arrays} - {"json"}):
            raise InvalidArgumentError(f"only one of the two has {min(different)}")
        for name, key, parameter in self._parameters():
            _set(f"{name}: {key}", parameter, arrays[f"net/{name}/{key}"])
        for name, trainer in self._trainers.items():
            _load_states(trainer, arrays[f"trainer/{name}"])
        # By now a Trainer has given all workers worker 0's values.
        for name, key, parameter in self._parameters():
            if parameter.grad_req == "null":
                for array in parameter.list_data():
                    array[:] = arrays[f"net/{name}/{key}"]
        others = words if mine is None else words["others"]
        for name, its in self._others.items():
            its.load_state_dict(others[name])
        if mine is not None:
            random_numbers.restore(words["random"])
            mx.random.seed(words["seed"])


def _as_words(name: str, state: Any) -> Any:
    try:
        return json.loads(json.dumps(state))
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(
            f"checkpoint: {name}'s state_dict holds what is no number, string, list or dict "
            f"({error})"
        ) from None


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
    with _file_in_memory() as path:
        states.tofile(path)
        trainer.load_states(path)


@contextmanager
def _file_in_memory() -> Iterator[str]:
    """Its name. No disk can be too full for it."""
    file = os.memfd_create("mercury-states")
    try:
        yield f"/proc/self/fd/{file}"
    finally:
        os.close(file)
