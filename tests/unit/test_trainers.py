"""A Trainer's scale follows `step` with a store of ours, and with no other distributed one. All
workers' must be the same: what their optimizers are told is compared."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import mxnet as mx
import pytest

from mxnet_plugins import optimizers, trainers
from mxnet_plugins.base_store import BaseStore
from pslite_ext.job.step_options import CHANGES, SPACING, StepOptions, is_compared


def trainer(store: Any) -> Any:
    """In the middle of training."""
    optimizer = mx.optimizer.SGD(rescale_grad=0.5)
    its = {"_update_on_kvstore": True, "_distributed": True, "_kv_initialized": True}
    return SimpleNamespace(_kvstore=store, _optimizer=optimizer, **its)


class Store(BaseStore):
    def __init__(self) -> None:
        self.scales: list[float] = []

    def begin_sums(self, optimizer: Any) -> None:
        self.scales.append(optimizer.rescale_grad)


def test_the_scale_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    """And is looked at where gradients are summed: a worker may leave an update out."""
    monkeypatch.setattr(trainers, "_stock_sums", lambda trainer: None)
    ours = trainer(Store())
    for scale in (0.25, 0.125):
        trainers._check_and_rescale_grad(ours, scale)
        assert ours._optimizer.rescale_grad == scale
    assert ours._kvstore.scales == []
    trainers._allreduce_grads(ours)
    trainers._allreduce_grads(trainer(mx.kv.create("local")))
    assert ours._kvstore.scales == [0.125]


def test_mxnet_s_own_stores_refuse_it_as_ever() -> None:
    others = trainer(mx.kv.create("local"))
    trainers._check_and_rescale_grad(others, 0.5)
    with pytest.raises(UserWarning, match="Possible change in the `batch_size`"):
        trainers._check_and_rescale_grad(others, 0.25)


class Worker:
    """What one says, by step."""

    def __init__(self, optimizer: Any) -> None:
        self.said: dict[int, str] = {}
        self.options = StepOptions(self.said.__setitem__)
        self.optimizer = optimizer

    def steps(self, count: int, **told: Any) -> None:
        vars(self.optimizer).update(told)
        for _ in range(count):
            self.options.step(optimizers.told(self.optimizer), self.optimizer.num_update + 1)
            self.optimizer.num_update += 1


def test_what_is_told_alike_is_said_alike() -> None:
    workers = [Worker(mx.optimizer.SGD(learning_rate=0.1, momentum=0.9)) for _ in range(2)]
    for worker in workers:
        worker.steps(20, rescale_grad=1 / 32)
        worker.steps(60, rescale_grad=1 / 27, lr=0.05)
    first, second = (worker.said for worker in workers)
    assert first == second
    assert set(first) == {1, 2, 4, 8, 16, 32, 64}
    for text in ("optimizer = SGD", "lr = 0.1", "momentum = 0.9", "rescale_grad = 0.03125"):
        assert text in first[1]
    assert "rescale_grad = 0.037037, lr = 0.05 from update 21 on" in first[64]


def test_a_difference_that_is_over_is_seen_later() -> None:
    worker, other = (Worker(mx.optimizer.SGD()) for _ in range(2))
    for its, last in ((worker, 27), (other, 26)):
        its.steps(40, rescale_grad=1 / 64)
        its.steps(1, rescale_grad=1 / last)  # the last batch of an epoch
        its.steps(3 * CHANGES, rescale_grad=1 / 64)
        assert all(f"update {step} on" in its.said[64] for step in (1, 41, 42))
    assert worker.said[32] == other.said[32]
    assert worker.said[64] != other.said[64]
    for its in (worker, other):  # and no words are left for it
        for step in range(2 * CHANGES):
            its.steps(1, lr=step + 1.5)
        its.steps(SPACING, lr=1.0)
    assert "update 41 on" not in worker.said[128]
    assert worker.said[128] != other.said[128]


class Own(mx.optimizer.SGD):  # type: ignore[misc]
    """A script's."""


def test_what_is_not_mxnet_s_may_be_each_worker_s_own() -> None:
    worker, other = (Worker(Own(momentum=0.9)) for _ in range(2))
    worker.steps(2)
    other.steps(2, aggregate_num=4, _index_update_count={0: 7}, folder="logs of worker 1")
    assert worker.said == other.said
    worker.steps(2)
    other.steps(2, momentum=0.8)
    assert worker.said != other.said


def test_what_is_unset_again_is_said() -> None:
    worker = Worker(mx.optimizer.SGD(clip_gradient=0.5))
    worker.steps(1)
    worker.steps(1, clip_gradient=None)
    assert "clip_gradient = 0.5" in worker.said[1]
    assert "; clip_gradient = None from update 2 on (" in worker.said[2]


def test_who_has_made_other_updates_is_noticed() -> None:
    worker, other = (Worker(mx.optimizer.Adam()) for _ in range(2))
    other.optimizer.num_update = 100  # it has loaded a checkpoint
    worker.steps(1)
    other.steps(1)
    assert worker.said != other.said


def test_a_schedule_stands_for_its_rates() -> None:
    def scheduled(factor: float) -> Worker:
        schedule = mx.lr_scheduler.FactorScheduler(step=5, factor=factor, base_lr=0.1)
        return Worker(mx.optimizer.SGD(learning_rate=0.1, lr_scheduler=schedule))

    worker, other = scheduled(0.5), scheduled(0.25)
    for its in (worker, other):
        its.steps(1)
        assert "schedule = FactorScheduler" in its.said[1]
    assert "schedule's factor = 0.5" in worker.said[1]
    assert worker.said != other.said
    before = dict(worker.said)
    assert worker.optimizer.learning_rate == 0.1  # which a script may print on one worker alone
    worker.optimizer.lr_scheduler(20)
    worker.steps(1)
    assert worker.said[2] == before[1]


def test_who_comes_later_goes_on_from_what_the_others_have_been_told() -> None:
    worker, newcomer = (Worker(mx.optimizer.SGD()) for _ in range(2))
    worker.steps(50, rescale_grad=0.5)
    newcomer.options.stand(worker.options.state())
    newcomer.optimizer.num_update = 50
    for its in (worker, newcomer):
        its.steps(20, rescale_grad=0.25)
    assert newcomer.said == {64: worker.said[64]}


def test_comparisons_are_frequent_at_first_and_go_on() -> None:
    compared = [step for step in range(1, 400) if is_compared(step)]
    assert compared == [1, 2, 4, 8, 16, 32, 64, 128, 192, 256, 320, 384]
