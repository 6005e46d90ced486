"""How long each layer of a gluon model computes, forward and backward, on the device at hand.

The whole model is timed, then each of its parts alone on the inputs that it had: a leaf block, or
one that holds parameters itself. What the parts alone add up to differs from the whole (caches,
operations between blocks), so their times are scaled to it, and the caller is told the ratio.

A part's time is put on the last of its parameters, for then all its gradients are ready; a part
without parameters (pooling, activation) counts with the one before it.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon


@dataclass
class TimedTensor:
    """A parameter that is exchanged."""

    name: str
    bytes: int
    forward_s: float = 0.0
    backward_s: float = 0.0


@dataclass(frozen=True)
class LayerTimes:
    """In the order of the forward pass."""

    tensors: list[TimedTensor]
    forward_s: float  # of the whole model
    backward_s: float
    alone_share: float  # what the parts alone add up to, of that
    unused: list[str]  # parameters that the forward pass did not touch


@dataclass(frozen=True)
class _Call:
    part: Any
    inputs: Any


def measure(
    net: Any, inputs: Sequence[Any], repeats: int, reached: Callable[[int, int], None]
) -> LayerTimes:
    """`reached` is told (steps done, steps in all)."""
    net.hybridize(active=False)  # a compiled model does not call its blocks
    calls = _calls(net, inputs)
    steps = 1 + len(calls)
    whole = _timed(net, list(inputs), list(inputs), repeats)
    reached(1, steps)
    alone = []
    for done, call in enumerate(calls, 2):
        alone.append(_timed(call.part, call.inputs, list(inputs), repeats))
        reached(done, steps)
    tensors = _assign(calls, alone)
    forward_s, backward_s = (sum(times) for times in zip(*alone))
    for tensor in tensors:
        tensor.forward_s *= whole[0] / max(forward_s, 1e-12)
        tensor.backward_s *= whole[1] / max(backward_s, 1e-12)
    named = {tensor.name for tensor in tensors}
    params = net.collect_params().values()
    return LayerTimes(
        tensors,
        *whole,
        alone_share=(forward_s + backward_s) / sum(whole),
        unused=[p.name for p in params if p.grad_req != "null" and p.name not in named],
    )


def _parts(block: Any) -> Iterator[Any]:
    children = list(block._children.values())
    if block._reg_params or not children:
        yield block
        return
    for child in children:
        # Before MXNet 2 a child is the block itself, later a reference to it.
        yield from _parts(child if isinstance(child, gluon.Block) else child())


def _calls(net: Any, inputs: Sequence[Any]) -> list[_Call]:
    """Every part's calls in one forward pass, with what it was given."""
    calls: list[_Call] = []
    parts = {id(part): part for part in _parts(net)}

    def note(part: Any, given: Any, _result: Any) -> None:
        calls.append(_Call(part, given))

    hooks = [part.register_forward_hook(note) for part in parts.values()]
    try:
        with autograd.record():  # as in training: batch normalisation, dropout
            net(*inputs)
        mx.nd.waitall()
    finally:
        for hook in hooks:
            hook.detach()
    return calls


def _arrays(value: Any) -> Iterator[Any]:
    if isinstance(value, mx.nd.NDArray):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _arrays(item)


def _fresh(value: Any, data: Sequence[Any]) -> Any:
    """The same values without a history; a gradient is due for all but the model's own inputs."""
    if isinstance(value, (list, tuple)):
        return type(value)(_fresh(item, data) for item in value)
    if not isinstance(value, mx.nd.NDArray) or any(value is given for given in data):
        return value
    copy = value.detach()
    if np.dtype(copy.dtype).kind == "f":
        copy.attach_grad()
    return copy


def _timed(part: Any, inputs: Any, data: Sequence[Any], repeats: int) -> tuple[float, float]:
    """Medians of forward and backward; one pass before them warms up."""
    forward, backward = [], []
    given = _fresh(inputs, data)
    for _ in range(1 + repeats):
        mx.nd.waitall()
        began = time.perf_counter()
        with autograd.record():
            results = list(_arrays(part(*given)))
        for result in results:
            result.wait_to_read()
        between = time.perf_counter()
        if any(p.grad_req != "null" for p in part.collect_params().values()) or any(
            array.grad is not None for array in _arrays(given)
        ):
            autograd.backward(results)
        mx.nd.waitall()
        forward.append(between - began)
        backward.append(time.perf_counter() - between)
    return statistics.median(forward[1:]), statistics.median(backward[1:])


def _assign(calls: Sequence[_Call], alone: Sequence[tuple[float, float]]) -> list[TimedTensor]:
    tensors: list[TimedTensor] = []
    known: set[str] = set()
    early = [0.0, 0.0]  # before the first parameter
    for call, (forward_s, backward_s) in zip(calls, alone):
        for param in call.part._reg_params.values():
            if param.grad_req != "null" and param.name not in known:
                known.add(param.name)
                size = int(np.prod(param.shape)) * np.dtype(param.dtype).itemsize
                tensors.append(TimedTensor(param.name, size))
        if tensors:
            tensors[-1].forward_s += forward_s + early[0]
            tensors[-1].backward_s += backward_s + early[1]
            early = [0.0, 0.0]
        else:
            early = [early[0] + forward_s, early[1] + backward_s]
    return tensors
