"""A worker that trains in the ways that docs/pytorch.md promises, and prints the name of each.

All workers have the same data, so a model that trains alone has the same weights.
"""

from __future__ import annotations

import copy
import functools
import io
import pickle
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import pslite_ext.torch as mercury
from pslite_ext import _core
from tests.integration.torch_own_gradients import OWN_GRADIENTS
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
from tests.integration.torch_surroundings import SURROUNDINGS


class Twice(nn.Module):  # type: ignore[misc]
    """One module used twice; in training it is computed once more on the way back."""

    def __init__(self) -> None:
        super().__init__()
        self.often, self.last = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x: Any) -> Any:
        for _ in range(2):
            x = checkpoint(self.often, x, use_reentrant=True)
        return self.last(x)


def hooks_that_fire_twice() -> None:
    train_both(*pair(Twice))


def weights_read_after_the_last_step() -> None:
    """The last step is not over yet when they are read: worker 1 is late."""

    def saved(model: Any) -> Any:
        torch.save(model, there := io.BytesIO())
        there.seek(0)
        return torch.load(there, weights_only=False)

    first: Callable[[Any], Any] = lambda model: model[0].weight  # noqa: E731
    ways: tuple[Callable[[Any], Any], ...] = (
        first,
        lambda model: next(model.parameters()),
        lambda model: dict(model.named_parameters())["0.weight"],
        lambda model: model.state_dict()["0.weight"],
        lambda model: first(copy.deepcopy(model)),
        lambda model: first(pickle.loads(pickle.dumps(model))),
        lambda model: first(saved(model)),
        lambda model: copy.deepcopy(held),
        lambda model: held.data,
    )
    model, optimizer, alone, other = pair(lambda: nn.Sequential(nn.Linear(4, 1)))
    held = model[0].weight
    torch.set_printoptions(precision=8)
    for number, way in enumerate(ways):
        x = inputs()[number % STEPS]
        if _core.rank() == 1:
            time.sleep(0.05)
        step(model, optimizer, x)
        step(alone, other, x)
        torch.testing.assert_close(way(model), alone[0].weight.data, msg=f"way {number}")
    step(model, optimizer, x)
    step(alone, other, x)
    assert repr(held) == repr(alone[0].weight), repr(held)


def copies_train_alone() -> None:
    model, optimizer, alone, _ = pair()
    twin = copy.deepcopy(model)
    step(twin, sgd(twin), inputs()[0])
    alike(model, alone)
    x = inputs()[0]
    torch.testing.assert_close(pickle.loads(pickle.dumps(model))(x), model(x))


def two_models_that_train_each_other() -> None:
    """A generator and a discriminator, whose gradients the other's backward brings, too."""
    torch.manual_seed(1)
    both = [(nn.Linear(2, 4), nn.Linear(4, 1)) for _ in range(2)]
    both[1] = copy.deepcopy(both[0])
    results = []
    for mine, (maker, judge) in zip((True, False), both):
        of_maker, of_judge = sgd(maker), sgd(judge)
        if mine:
            maker, of_maker = mercury.wrap(maker, of_maker)
            judge, of_judge = mercury.wrap(judge, of_judge)
        for x in inputs():
            made = maker(x[:, :2].detach())
            of_judge.zero_grad()
            (judge(made.detach()).mean() - judge(x).mean()).backward()
            of_judge.step()
            of_maker.zero_grad()
            (-judge(made).mean()).backward()
            of_maker.step()
        results.append([maker.weight, maker.bias, judge.weight, judge.bias])
    for ours, theirs in zip(*results):
        torch.testing.assert_close(ours, theirs)


def frozen_and_thawed() -> None:
    def sgd_of_some(model: Any) -> Any:
        for parameter in (model[0].weight, model[3].bias):
            parameter.requires_grad_(False)
        return torch.optim.SGD([p for p in model.parameters() if p is not model[3].bias], lr=0.1)

    model, optimizer, alone, other = pair(optimizer=sgd_of_some)
    train_both(model, optimizer, alone, other)
    for some in (model, alone):
        some[0].weight.requires_grad_(True)
    train_both(model, optimizer, alone, other)


def halves() -> None:
    for dtype in (torch.bfloat16, torch.float16):
        train_both(*pair(functools.partial(nn.Linear, 4, 2, dtype=dtype)), dtype=dtype)
    model, optimizer, alone, other = pair()
    with torch.autocast("cpu", torch.bfloat16):
        train_both(model, optimizer, alone, other)


def scaled_losses() -> None:
    """Of which one is not finite on worker 1: nobody takes that step, and the scale falls."""

    def adam(model: Any) -> Any:
        return torch.optim.Adam(model.parameters(), lr=0.01, fused=True)

    for kind in (sgd, adam):
        model, optimizer, alone, other = pair(optimizer=kind)
        scaler, of_alone = (torch.amp.GradScaler("cpu", init_scale=256.0) for _ in range(2))
        for number, x in enumerate(inputs()):
            infinite = number == 1 and _core.rank() == 1
            scaler.scale(model(x).pow(2).sum() * (float("inf") if infinite else 1)).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            of_alone.scale(alone(x).pow(2).sum() * (float("inf") if number == 1 else 1)).backward()
            of_alone.step(other)
            of_alone.update()
            other.zero_grad()
        assert scaler.get_scale() == 128.0
        alike(model, alone)


def goes_on_from_a_checkpoint() -> None:
    """Model and optimizer as they were saved, on all workers; momentum goes on."""
    model, optimizer, alone, other = pair()
    train_both(model, optimizer, alone, other)
    saved = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
    again = layers()
    its = torch.optim.SGD(again.parameters(), lr=0.9)
    again.load_state_dict(saved[0])
    its.load_state_dict(copy.deepcopy(saved[1]))  # it keeps what it is given
    train_both(*mercury.wrap(again, its), alone, other)
    model.load_state_dict(saved[0])  # and back, in what is wrapped already
    optimizer.load_state_dict(saved[1])
    for x in inputs():
        step(model, optimizer, x)
    alike(model, alone)


def groups_with_options_of_their_own() -> None:
    def two_groups(model: Any) -> Any:
        ends = [model[0].weight, model[3].bias]
        rest = [p for p in model.parameters() if not any(p is end for end in ends)]
        groups = [{"params": ends, "lr": 0.2}, {"params": rest, "weight_decay": 0.1}]
        return torch.optim.Adam(groups, lr=0.01)

    model, optimizer, alone, other = pair(optimizer=two_groups)
    for x in inputs():
        for its in (optimizer, other):
            its.param_groups[1]["lr"] *= 0.5
        step(model, optimizer, x)
        step(alone, other, x)
    alike(model, alone)


def steps_with_a_closure() -> None:
    model, optimizer, alone, other = pair()
    for x in inputs():
        for one, its in ((model, optimizer), (alone, other)):

            def closure(one: Any = one, its: Any = its, x: Any = x) -> Any:
                its.zero_grad()
                loss = one(x).pow(2).sum()
                loss.backward()
                return loss

            assert float(its.step(closure)) > 0
    alike(model, alone)


def compiled() -> None:
    """Before wrap, whole or in part: one graph. After it: a break before each wait."""

    def whole(model: Any) -> Any:
        return torch.compile(model, backend="eager", fullgraph=True)

    def part(model: Any) -> Any:
        model[0] = torch.compile(model[0], backend="eager", fullgraph=True)
        return model

    for how in (whole, part):
        torch.manual_seed(3)
        alone = layers()
        model = how(copy.deepcopy(alone))
        train_both(*mercury.wrap(model, sgd(model)), alone, sgd(alone))
        torch.compiler.reset()
    model, optimizer, alone, other = pair()
    later = torch.compile(model, backend="eager")
    for x in inputs():
        step(later, optimizer, x)
        step(alone, other, x)
    alike(model, alone)


def parameters_that_were_kept() -> None:
    """From before wrap: read, changed, averaged, each while an update is still to come."""
    torch.manual_seed(3)
    alone = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2))
    model = copy.deepcopy(alone)
    kept, of_alone = list(model.parameters()), list(alone.parameters())
    model, optimizer = mercury.wrap(model, sgd(model))
    both = [(kept, optimizer), (of_alone, sgd(alone))]
    averages = [[p.detach().clone() for p in some] for some, _ in both]
    ways: tuple[Callable[[Any, Any, Any], Any], ...] = (
        lambda some, _its, _mean: [p.norm() for p in some],
        lambda some, _its, _mean: torch._foreach_norm(some),
        lambda some, _its, _mean: [p.detach().numpy().sum() for p in some],
        lambda some, _its, _mean: [p.mul_(0.9).sum() for p in some],
        lambda some, _its, _mean: torch._foreach_mul_(some, 0.9),
        lambda some, _its, mean: torch._foreach_lerp_(mean, some, 0.5),
        lambda _some, its, _mean: [p.add_(0.1).sum() for p in its.param_groups[0]["params"]],
        lambda _some, its, _mean: [s["momentum_buffer"].sum() for s in its.state.values()],
        lambda some, _its, _mean: [(p @ p.t()).sum() for p in some if p.dim() == 2],
        lambda some, _its, _mean: torch.cat([p.flatten() for p in some]).tolist(),
        lambda some, _its, _mean: [p[0].item() for p in some if p.dim() == 1],
    )
    for number, way in enumerate(ways):
        late(model, optimizer, alone, both[1][1], inputs()[number % STEPS])
        with torch.no_grad():
            seen = [way(*one, mean) for one, mean in zip(both, averages)]
        torch.testing.assert_close(seen[0], seen[1], msg=lambda text, n=number: f"way {n}: {text}")
    alike(model, alone)
    torch.testing.assert_close(*averages)


class Branch(nn.Module):  # type: ignore[misc]
    """Half of it is used or not."""

    def __init__(self) -> None:
        super().__init__()
        self.always, self.sometimes = nn.Linear(4, 2), nn.Linear(4, 2)

    def forward(self, x: Any, both: bool) -> Any:
        return self.always(x) + self.sometimes(x) if both else self.always(x)


def gradients_that_stay() -> None:
    """And what a backward adds to them while the last sums are under way: worker 1 is late, and
    the only one that uses all of the model in each forward."""

    def drop(parameter: Any) -> None:
        parameter.grad = None

    def put(parameter: Any) -> None:
        parameter.grad = torch.ones_like(parameter)

    ways: tuple[tuple[Callable[[Any], Any] | None, int], ...] = (
        *((None, 1), (None, 2), (drop, 1), (drop, 2), (put, 1), (put, 2)),
        *((lambda parameter: parameter.grad.mul_(0.5), backwards) for backwards in (1, 2)),
    )
    for way, backwards in ways:
        model, optimizer, alone, other = pair(Branch)
        for x in inputs():
            if _core.rank() == 1:
                time.sleep(0.02)
            for _ in range(backwards):
                model(x, _core.rank() == 1).pow(2).mean().backward()
                (alone(x, False).pow(2).mean() + alone(x, True).pow(2).mean()).div(2).backward()
            optimizer.step()
            other.step()
            if way is not None:
                for parameter in (*model.parameters(), *alone.parameters()):
                    way(parameter)
        alike(model, alone)
        for parameter, own in zip(model.parameters(), alone.parameters()):
            torch.testing.assert_close(parameter.grad, own.grad)


def hooks_after_the_step() -> None:
    """They see what the step has done."""
    model, optimizer, alone, other = pair()
    seen: list[Any] = []
    for its, whose in ((optimizer, model), (other, alone)):
        its.register_step_post_hook(
            lambda *_, one=whose: seen.append([p.sum().item() for p in one.parameters()])
        )
    for x in inputs():
        late(model, optimizer, alone, other, x)
        torch.testing.assert_close(seen[-2], seen[-1])


def schedules_made_before() -> None:
    torch.manual_seed(3)
    alone = layers()
    model = copy.deepcopy(alone)
    both = [(model, sgd(model)), (alone, sgd(alone))]
    schedules = [torch.optim.lr_scheduler.StepLR(its, 1, gamma=0.5) for _, its in both]
    mercury.wrap(*both[0])
    for x in inputs():
        for (one, its), schedule in zip(both, schedules):
            step(one, its, x)
            schedule.step()
    assert both[0][1].param_groups[0]["lr"] == 0.1 * 0.5**STEPS
    alike(model, alone)


def parameters_added_later() -> None:
    """Unfrozen in the middle, as in fine-tuning; worker 0's values count for these, too."""

    def of_the_last(model: Any) -> Any:
        model[0].requires_grad_(False)
        return torch.optim.SGD(model[3].parameters(), lr=0.1, momentum=0.5)

    model, optimizer, alone, other = pair(optimizer=of_the_last)
    train_both(model, optimizer, alone, other)
    for one, its in ((model, optimizer), (alone, other)):
        one[0].requires_grad_(True)
        its.add_param_group({"params": one[0].parameters(), "lr": 0.05})
    train_both(model, optimizer, alone, other)


def pickled() -> None:
    """What comes out needs none of us, and is nobody's."""
    model, optimizer, alone, other = pair()
    late(model, optimizer, alone, other, inputs()[0])
    for one in (model, optimizer, model.state_dict(), list(model.parameters())):
        data = pickle.dumps(one)
        assert b"pslite" not in data
        assert b"mercury" not in data
    late(model, optimizer, alone, other, inputs()[1])
    twin, its = pickle.loads(pickle.dumps((model, optimizer)))
    assert type(its) is torch.optim.SGD
    assert all(type(p) is nn.Parameter for p in twin.parameters())
    alike(twin, alone)
    for x in inputs():
        step(twin, its, x)
        step(alone, other, x)
    alike(twin, alone)
    assert type(copy.deepcopy(optimizer)) is torch.optim.SGD


class Own(torch.optim.SGD):  # type: ignore[misc]
    """One that counts in its group, takes more than a closure, and forgets gradients in its way."""

    def step(self, closure: Any = None, scale: float = 1.0) -> Any:
        for group in self.param_groups:
            group["step"] = group.get("step", 0) + 1
            group["lr"] = 0.1 * scale / group["step"]
        return super().step(closure)

    def zero_grad(self, set_to_none: bool = True) -> None:
        self.forgotten = True
        super().zero_grad(set_to_none)


def optimizers_of_one_s_own() -> None:
    model, optimizer, alone, other = pair(optimizer=lambda m: Own(m.parameters(), lr=0.1))
    for number, x in enumerate(inputs()):
        for one, its in ((model, optimizer), (alone, other)):
            one(x).pow(2).sum().backward()
            its.step(scale=0.5 + number)
            its.zero_grad()
            assert its.forgotten
    assert optimizer.param_groups[0]["step"] == STEPS
    alike(model, alone)


class Rotation(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.turn = nn.Parameter(torch.randn(4, 3, dtype=torch.complex64))
        self.shift = nn.Parameter(torch.randn(3))

    def forward(self, x: Any) -> Any:
        return (x.to(torch.complex64) @ self.turn).abs() + self.shift


def complex_parameters() -> None:
    def adam(model: Any) -> Any:
        return torch.optim.Adam(model.parameters(), lr=0.1)

    for kind in (sgd, adam):
        train_both(*pair(Rotation, kind))


if __name__ == "__main__":
    torch.set_num_threads(1)
    for use in (
        hooks_that_fire_twice,
        weights_read_after_the_last_step,
        copies_train_alone,
        two_models_that_train_each_other,
        frozen_and_thawed,
        halves,
        scaled_losses,
        goes_on_from_a_checkpoint,
        groups_with_options_of_their_own,
        steps_with_a_closure,
        compiled,
        parameters_that_were_kept,
        gradients_that_stay,
        hooks_after_the_step,
        schedules_made_before,
        parameters_added_later,
        pickled,
        optimizers_of_one_s_own,
        complex_parameters,
        *OWN_GRADIENTS,
        *SURROUNDINGS,
    ):
        use()
        print(use.__name__, flush=True)
    print("all uses", flush=True)
