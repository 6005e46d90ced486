"""What else goes on in a process that trains, for torch_uses.py."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
)

import pslite_ext.torch as mercury
from pslite_ext.torch.optimizers import steps_in_parts, why_not
from pslite_ext.torch.staging import Staged
from pslite_ext.torch.updates import Updates
from tests.integration.torch_pairs import (
    STEPS,
    alike,
    inputs,
    late,
    layers,
    pair,
    sgd,
    step,
    train_both,
)
from tests.integration.torch_training import LateCopies


def batch_norm_over_workers_without_a_group() -> None:
    """It says so; a process group would be a script's own affair."""
    pair(lambda: nn.SyncBatchNorm.convert_sync_batchnorm(layers()))


def rows_that_a_forward_changes() -> None:
    """It says so."""
    pair(lambda: nn.Sequential(nn.Embedding(4, 2, max_norm=0.5)))


def optimizers_of_torch_step_in_parts() -> None:
    """All that are not refused, but Adafactor: of parameters of several types, each part would go
    by its own first one's."""
    parameter = nn.Parameter(torch.ones(2, 2))
    kinds = [kind for kind in vars(torch.optim).values() if isinstance(kind, type)]
    made = [kind([parameter], lr=0.1) for kind in kinds if kind is not torch.optim.Optimizer]
    assert len(made) > 12, made
    for optimizer in made:
        in_parts = steps_in_parts(optimizer) or why_not(optimizer)
        assert in_parts or type(optimizer).__name__ == "Adafactor", optimizer


def matrices_made_orthogonal() -> None:
    if hasattr(torch.optim, "Muon"):  # since torch 2.9
        bare = functools.partial(nn.Linear, bias=False)
        train_both(
            *pair(
                lambda: nn.Sequential(bare(4, 6), nn.Tanh(), bare(6, 2)),
                lambda model: torch.optim.Muon(model.parameters(), lr=0.1),
            )
        )


def where_new_tensors_go_elsewhere() -> None:
    """As after torch.set_default_device, while the parameters are on the CPU."""
    batches = inputs()
    torch.manual_seed(3)
    model, alone = layers(), layers()
    alone.load_state_dict(model.state_dict())
    optimizer, other = sgd(model), sgd(alone)
    with torch.device("meta"):
        mercury.wrap(model, optimizer)
        for x in batches:
            step(model, optimizer, x)
            step(alone, other, x)
        model.load_state_dict(model.state_dict())
        alike(model, alone)


class Held(torch.optim.SGD):  # type: ignore[misc]
    """Its step lets another thread use a parameter that is still to be updated, and gives it time
    to begin a step, which it must not."""

    mercury_per_parameter = True
    is_stepping = False
    other: threading.Thread | None = None

    def step(self, closure: Any = None) -> None:
        assert not self.is_stepping
        self.is_stepping = True
        if self.other is not None:
            self.other.start()
            self.other.join(0.2)
            self.other = None
        super().step(closure)
        self.is_stepping = False


class Apart(nn.Module):  # type: ignore[misc]
    """Parameters of two types, which do not travel together."""

    def __init__(self) -> None:
        super().__init__()
        self.narrow, self.wide = nn.Linear(4, 2), nn.Linear(4, 2, dtype=torch.float64)

    def forward(self, x: Any) -> Any:
        return self.narrow(x) + self.wide(x.double())


def a_thread_that_uses_parameters() -> None:
    model, optimizer, alone, other = pair(Apart, lambda m: Held(m.parameters(), lr=0.1))
    step(model, optimizer, inputs()[0])
    step(alone, other, inputs()[0])
    alike(model, alone)
    seen: list[Any] = []
    use = threading.Thread(target=lambda: seen.append(model.wide.weight.detach().clone()))
    step(model, optimizer, inputs()[1])
    step(alone, other, inputs()[1])
    optimizer.other = use
    with patch.object(Updates, "_arrived_first", lambda *_: []):  # only what is asked for
        model.narrow.weight.sum()
    use.join()
    torch.testing.assert_close(seen, [alone.wide.weight.detach()])
    alike(model, alone)


def _train(makes: Callable[[], Any], loss: Callable[[Any, Any], Any], optimizer: Any = sgd) -> None:
    """What the loss has been is the same, too."""
    model, its, alone, other = pair(makes, optimizer)
    for x in inputs():
        losses = [loss(one, x.detach()) for one in (model, alone)]
        torch.testing.assert_close(*losses)
        sum(losses).backward()
        for one in (its, other):
            one.step()
            one.zero_grad()
    alike(model, alone)


def nested_tensors() -> None:
    """Jagged ones, and dense ones, through the same layer."""
    first, second = torch.tensor([1, 2, 3]), torch.tensor([1, 4])

    def loss(model: Any, _: Any) -> Any:
        jagged = torch.nested.nested_tensor([first, second], layout=torch.jagged)
        return (model(jagged).values() - 1).pow(2).sum() + (model(second) - 1).pow(2).sum()

    _train(lambda: nn.Embedding(5, 4), loss)


class Plain(torch.Tensor):  # type: ignore[misc]
    """A class of a script's own, which operations keep."""


class Doubled(torch.Tensor):  # type: ignore[misc]
    """One in which an operation means something else."""

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = super().__torch_function__(function, types, args, kwargs or {})
        if function is nn.functional.linear and result is not NotImplemented:
            result = result * 2
        return result


def inputs_of_other_classes() -> None:
    for kind in (Plain, Doubled):

        def loss(model: Any, x: Any, kind: Any = kind) -> Any:
            made = [model(x.as_subclass(kind)) for _ in range(2)]
            assert [type(y) for y in made] == [kind, kind]
            return sum(y.as_subclass(torch.Tensor).pow(2).mean() for y in made)

        _train(layers, loss)


class Halved(nn.Module):  # type: ignore[misc]
    """An operation that Adam has, too."""

    def forward(self, x: Any) -> Any:
        return x / 2


def _smooth() -> Any:
    return nn.Sequential(nn.Linear(4, 6), Halved(), nn.Tanh(), nn.Linear(6, 2))


def _adam(model: Any) -> Any:
    return torch.optim.Adam(model.parameters(), lr=0.01)


def transforms_of_functions() -> None:
    """An update that is made in one is no part of it; and one that is given the parameters has
    those after the step."""

    def of_inputs(model: Any, x: Any) -> Any:
        slopes = torch.func.vmap(torch.func.grad(lambda one: model(one).sum()))(x)
        value, along = torch.func.jvp(model, (x,), (torch.ones_like(x),))
        return (slopes - 1).pow(2).sum() + value.pow(2).sum() + along.pow(2).sum()

    def of_parameters(model: Any, x: Any) -> Any:
        def loss(parameters: Any) -> Any:
            return torch.func.functional_call(model, parameters, x).pow(2).sum()

        slopes = torch.func.grad(loss)(dict(model.named_parameters()))
        now = {name: p.detach() for name, p in model.named_parameters()}
        torch.testing.assert_close(slopes, torch.func.grad(loss)(now))
        return model(x).pow(2).sum()

    for optimizer in (sgd, _adam, lambda m: torch.optim.Adam(m.parameters(), lr=0.01, fused=True)):
        _train(_smooth, of_inputs, optimizer)
        _train(_smooth, of_parameters, optimizer)


class Unheard(nn.Module):  # type: ignore[misc]
    """It uses its parameters in a way that nobody hears."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 2)

    def forward(self, x: Any) -> Any:
        with torch._C.DisableTorchFunctionSubclass():
            return nn.functional.linear(x, self.inner.weight, self.inner.bias)


def a_transform_before_the_first_step() -> None:
    """It does not make it seem that everything is heard."""
    model, optimizer, alone, other = pair(Unheard)
    torch.func.vmap(model)(inputs()[0])
    train_both(model, optimizer, alone, other)


def selective_checkpoints() -> None:
    def policy(_: Any, operation: Any, *_args: Any, **_kwargs: Any) -> Any:
        again = operation is torch.ops.aten.tanh.default
        return CheckpointPolicy.PREFER_RECOMPUTE if again else CheckpointPolicy.MUST_SAVE

    contexts = functools.partial(create_selective_checkpoint_contexts, policy)

    def loss(model: Any, x: Any) -> Any:
        x = x.requires_grad_()
        return checkpoint(model, x, use_reentrant=False, context_fn=contexts).pow(2).sum()

    _train(_smooth, loss, _adam)


def graphs_of_operations() -> None:
    model, optimizer, alone, other = pair(_smooth)
    x = inputs()[0].detach()
    late(model, optimizer, alone, other, x)
    graph = make_fx(model)(x)
    for _ in range(2):
        torch.testing.assert_close(graph(x), alone(x))
    alike(model, alone)


def steps_in_a_mode() -> None:
    """It sees all that a step does: here it lets a graph outlive it."""
    model, optimizer, alone, other = pair(_smooth)
    slopes = []
    for one, its in ((model, optimizer), (alone, other)):
        with torch.autograd.graph.allow_mutation_on_saved_tensors():
            for x in inputs():
                before = one(x).pow(2).sum()
                step(one, its, x.detach())
                before.backward()
                slopes.append(x.grad)
                its.zero_grad()
    torch.testing.assert_close(slopes[:STEPS], slopes[STEPS:])
    alike(model, alone)


class UnheardInEvaluation(Unheard):
    def forward(self, x: Any) -> Any:
        return self.inner(x) if self.training else super().forward(x)


def evaluation_by_other_code() -> None:
    """Also if there was some before the first step."""
    for at_first in (False, True):
        model, optimizer, alone, other = pair(UnheardInEvaluation)
        for x in inputs():
            if at_first:
                model.eval()(x)
            late(model.train(), optimizer, alone.train(), other, x)
            torch.testing.assert_close(model.eval()(x), alone.eval()(x))


class Streams(LateCopies):
    """Of a device that does things in several orders."""

    now = "main"

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[tuple[str, str]] = []  # which stream for which

    def here(self) -> Any:
        return functools.partial(self._in, self.now)

    @contextmanager
    def _in(self, stream: str) -> Iterator[None]:
        before, self.now = self.now, stream
        yield
        self.now = before
        if before != stream:
            self.waits.append((before, stream))


class Placed(torch.optim.SGD):  # type: ignore[misc]
    """It notes where it steps."""

    mercury_per_parameter = True

    def __init__(self, parameters: Any, streams: Streams) -> None:
        super().__init__(parameters, lr=0.1)
        self.streams = streams
        self.seen: set[str] = set()

    def step(self, closure: Any = None) -> None:
        self.seen.add(self.streams.now)
        super().step(closure)


def streams_that_use_parameters() -> None:
    """A late update is made in the step's stream, and a late sum in the backward's; who needs it
    waits for that."""
    streams = Streams()
    with patch("pslite_ext.torch.training.sender_from", lambda _: Staged(streams)):
        model, optimizer, alone, other = pair(
            optimizer=lambda model: Placed(model.parameters(), streams)
        )
    for x in inputs():
        late(model, optimizer, alone, other, x)
        streams.now = "side"
        torch.testing.assert_close(model[0].weight, alone[0].weight)
        streams.now = "main"
        for one in (model, alone):
            one(x).pow(2).sum().backward()
        streams.now = "side"
        torch.testing.assert_close(model[0].weight.grad, alone[0].weight.grad)
        streams.now = "main"
        for its in (optimizer, other):
            its.zero_grad()
    assert optimizer.seen == {"main"}
    assert set(streams.waits) == {("side", "main")}
    assert len(streams.waits) >= 2 * STEPS
    alike(model, alone)


SURROUNDINGS = (
    batch_norm_over_workers_without_a_group,
    rows_that_a_forward_changes,
    optimizers_of_torch_step_in_parts,
    matrices_made_orthogonal,
    where_new_tensors_go_elsewhere,
    a_thread_that_uses_parameters,
    nested_tensors,
    inputs_of_other_classes,
    transforms_of_functions,
    a_transform_before_the_first_step,
    evaluation_by_other_code,
    selective_checkpoints,
    graphs_of_operations,
    steps_in_a_mode,
    streams_that_use_parameters,
)
