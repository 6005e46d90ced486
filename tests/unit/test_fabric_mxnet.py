"""A model as one array, what a step is, and what of an optimizer goes to the server."""

from __future__ import annotations

from typing import Any

import mxnet as mx
import numpy as np
import pytest

from mxnet_plugins import errors, trainers
from mxnet_plugins.fabric import store
from mxnet_plugins.fabric.optimizers import WorkerPart
from mxnet_plugins.fabric.parameters import Parameters, StepKeys
from pslite_ext import fabric
from pslite_ext.fabric import Rule, alike
from pslite_ext.job import figures


def test_parameters_lie_one_behind_the_other() -> None:
    parameters = Parameters()
    parameters.add("a", (2, 3))
    parameters.add("b", ())
    parameters.add("c", (0, 4))
    parameters.add(7, (2,))
    assert list(parameters.keys()) == ["a", "b", "c", 7]
    whole = np.arange(9.0)
    assert parameters.part(whole, "a").tolist() == [[0, 1, 2], [3, 4, 5]]
    assert parameters.part(whole, "b").tolist() == 6
    assert parameters.part(whole, "c").shape == parameters.shape("c") == (0, 4)
    parameters.part(whole, 7)[...] = -1
    assert whole[7:].tolist() == [-1, -1]
    assert "a" in parameters
    assert "d" not in parameters


def test_a_step_is_over_with_the_last_key_that_is_expected() -> None:
    step = StepKeys(["a", "b"])
    for _ in range(2):
        assert not step.begins_with("b")
        assert not step.pushed("b")
        assert not step.begins_with("a")
        assert step.pushed("a")
        step.over()


def test_a_key_that_comes_again_says_what_a_step_has() -> None:
    step = StepKeys(["a", "b", "never"])
    assert not step.pushed("a")
    assert not step.pushed("b")
    assert step.begins_with("a")
    step.over()
    assert not step.pushed("a")
    assert step.pushed("b")


class Doubled:
    """The job's worker, in a job of two that have the same."""

    said: list[list[str]]

    def get(self) -> Any:
        return np.zeros(4, np.float32)

    def all_reduce(self, part: Any) -> Any:
        return 2 * part

    def push(self, update: Any) -> int:
        raise AssertionError("this job is synchronous")


@pytest.fixture
def of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    job = {"DMLC_ROLE": "worker", "DMLC_NUM_WORKER": "2", "DMLC_NUM_SERVER": "1"}
    job |= {"DMLC_TASK_ID": "0", "DMLC_PS_VAN_TYPE": "mercury", "MERCURY_FABRIC": "1"}
    job |= {"DMLC_PS_ROOT_URI": "127.0.0.1", "DMLC_PS_ROOT_PORT": "9000"}
    for name, value in job.items():
        monkeypatch.setenv(name, value)
    for installed in (errors, trainers):
        monkeypatch.setattr(installed, "install", lambda: None)
    monkeypatch.setattr(store, "at_exit", lambda call: None)
    monkeypatch.setattr(figures, "serve", lambda values: None)
    monkeypatch.setattr(fabric, "register_as_worker", lambda first, rule: Doubled())
    Doubled.said = []
    monkeypatch.setattr(alike, "agree", lambda worker, lines: worker.said.append(lines))


def with_two_keys(name: str) -> Any:
    made = store.FabricKVStore(name, synchronous="_async" not in name)
    made.init(["a", "b"], [mx.nd.zeros((2,)), mx.nd.zeros((2,))])
    return made


@pytest.mark.usefixtures("of_two")
def test_a_step_without_a_key_gives_no_old_sums() -> None:
    made = with_two_keys("dist_sync")
    a, b = mx.nd.ones((2,)), mx.nd.ones((2,))
    made.pushpull(["a", "b"], [a, b])
    assert a.asnumpy().tolist() == b.asnumpy().tolist() == [2, 2]
    made.pushpull("a", a)
    with pytest.raises(mx.MXNetError, match=r"tensor 'b' was not pushed, .* an lr_mult of 0"):
        made.pushpull("a", a)


@pytest.mark.usefixtures("of_two")
def test_a_key_that_steps_are_without() -> None:
    """With an optimizer, it is enough that a first step shows which keys there are."""
    made = with_two_keys("dist_sync")
    made.set_optimizer(mx.optimizer.SGD(learning_rate=1.0))
    a = mx.nd.ones((2,))
    for step in range(3):
        a[:] = 1
        made.pushpull("a", a)  # in place: what is waited for comes where the gradient is
        assert a.asnumpy().tolist() == ([1, 1] if step == 0 else [-2 * (step + 1)] * 2)
    with pytest.raises(mx.MXNetError, match="tensor 'b' is not one of those that each step"):
        made.push("b", a)


@pytest.mark.usefixtures("of_two")
@pytest.mark.parametrize("name", ["dist_sync", "dist_async"])
def test_workers_say_what_they_must_have_alike(name: str) -> None:
    made = store.FabricKVStore(name, synchronous="_async" not in name)
    learns = mx.nd.zeros((2,))
    learns.attach_grad()
    made.init(["a", "b"], [learns, mx.nd.zeros((1, 2))])
    made.set_optimizer(mx.optimizer.SGD(learning_rate=0.5))
    made._join()
    ((optimizer, *keys),) = Doubled.said
    whole = name == "dist_sync"  # else each may learn in its own way
    assert optimizer.startswith("as its optimizer SGD")
    assert ("lr = 0.5" in optimizer) == whole
    assert keys == [f"key 'a' of shape (2,){', which learns' * whole}", "key 'b' of shape (1, 2)"]


@pytest.mark.usefixtures("of_two")
def test_what_trainers_are_told_is_compared_now_and_then() -> None:
    made = with_two_keys("dist_sync")
    optimizer = mx.optimizer.SGD(learning_rate=1.0)
    made.set_optimizer(optimizer)
    a = mx.nd.ones((2,))
    for step in range(1, 6):
        optimizer.rescale_grad = 1 / step
        made.begin_sums(optimizer)
        made.pushpull(["a", "b"], [a, a.copy()])
    told = [line for (line,) in Doubled.said[1:]]
    # Of the first step, a Trainer has no store yet.
    assert len(told) == 3
    assert "rescale_grad = 0.5, " in told[0]
    assert "rescale_grad = 0.2 from update 5 on (" in told[2]


@pytest.mark.usefixtures("of_two")
@pytest.mark.parametrize(
    ("name", "optimizer"),
    [
        ("dist_async", mx.optimizer.Ftrl),
        ("dist_async", mx.optimizer.FTML),
        ("dist_sync", mx.optimizer.SGLD),
    ],
)
def test_optimizers_by_which_workers_would_differ(name: str, optimizer: Any) -> None:
    with pytest.raises(mx.MXNetError, match="set_optimizer: .* use another optimizer, or 'dist_"):
        with_two_keys(name).set_optimizer(optimizer())


@pytest.mark.parametrize(
    ("name", "settings", "rule"),
    [
        ("sgd", {"momentum": 0.9}, Rule(0.9)),
        ("sgd", {}, Rule()),
        ("nag", {"momentum": 0.5}, Rule(0.5, nesterov=True)),
        ("adam", {}, Rule()),
        ("signum", {"momentum": 0.9}, Rule()),
    ],
)
def test_momentum_goes_to_the_server(name: str, settings: dict[str, float], rule: Rule) -> None:
    optimizer = mx.optimizer.create(name, learning_rate=0.5, **settings)
    assert WorkerPart(mx.optimizer.get_updater(optimizer)).rule == rule


def test_a_subclass_keeps_its_momentum() -> None:
    class Own(mx.optimizer.SGD):  # type: ignore[misc]
        pass

    assert WorkerPart(mx.optimizer.get_updater(Own(momentum=0.9))).rule == Rule()
    assert WorkerPart(lambda key, gradient, weight: None).rule == Rule()


@pytest.mark.parametrize("name", ["sgd", "nag"])
def test_the_worker_applies_the_rest(name: str) -> None:
    optimizer = mx.optimizer.create(name, learning_rate=0.5, momentum=0.9, wd=0.1)
    part = WorkerPart(mx.optimizer.get_updater(optimizer))
    for rate in (0.5, 0.25):
        optimizer.set_learning_rate(rate)
        weight = mx.nd.ones((2,))
        part("key", mx.nd.ones((2,)) * 2, weight)
        np.testing.assert_allclose(weight.asnumpy(), 1 - rate * (2 + 0.1), rtol=1e-6)
        assert optimizer.momentum == 0.9
