"""A model as one array, what a step is, and what of an optimizer goes to the server."""

from __future__ import annotations

import mxnet as mx
import numpy as np
import pytest

from mxnet_plugins.fabric.optimizers import WorkerPart
from mxnet_plugins.fabric.parameters import Parameters, StepKeys
from pslite_ext.fabric import Rule


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
