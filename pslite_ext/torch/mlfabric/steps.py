"""What a step of an optimizer is under MLfabric: an update of the model, or the same step on all.

Asynchronous, bounded or not, the server has the model. A worker's optimizer steps as it would
alone; what that has changed is pushed, and the newest model is got. (local.py does so after several
steps.) Synchronous, the workers have the model: gradients are averaged as a backward ends, and each
worker's optimizer does the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import filterfalse
from typing import Any

import numpy as np
import torch

from pslite_ext.errors import InvalidArgumentError
from pslite_ext.fabric import Rule, Worker, alike
from pslite_ext.job.step_options import StepOptions, is_seldom_compared
from pslite_ext.job.steps import STEPS
from pslite_ext.torch.agreement import told_to
from pslite_ext.torch.alone import Alone
from pslite_ext.torch.entries import refuse_sparse
from pslite_ext.torch.mlfabric.momentum import left_to_the_server, rule_of
from pslite_ext.torch.mlfabric.vector import ParameterVector
from pslite_ext.torch.modules import ForwardHook, Hook, is_scripted, refuse_parallel_around

CALLER = "mercury.fabric"


def _refuse_parallel(model: Any = None, *_args: Any) -> None:
    refuse_parallel_around(model, CALLER)


class FabricTraining(Alone):
    """One model and its optimizer; `rule` is what the server is asked to do with updates."""

    rule: Rule | None = None

    def __init__(
        self, model: Any, optimizer: Any, names: dict[Any, str], step: Callable[..., Any]
    ) -> None:
        super().__init__(model, optimizer, names, step)
        self._vector = ParameterVector(self._names)
        self._worker: Worker | None = None
        self._loaded = False
        model.register_forward_pre_hook(ForwardHook(_refuse_parallel, _refuse_parallel))
        for module in filterfalse(is_scripted, model.modules()):
            module.register_load_state_dict_post_hook(Hook(lambda *_: self.loaded()))

    def names(self) -> dict[Any, str]:
        """Of the parameters that are trained."""
        return self._names

    def first(self) -> Any:
        """The model's first values, as an array."""
        return self._vector.values()

    def begin(self, worker: Worker) -> None:
        """The job has begun: its model is worker 0's."""
        self._worker = worker
        self._vector.put(worker.get()[: self._vector.size])

    def add_parameters(self) -> None:
        raise InvalidArgumentError(
            "parameters that come after mercury.fabric: a model under MLfabric keeps its size: "
            "give the optimizer all of them before"
        )

    def loaded(self) -> None:
        """The script has loaded values or states, which are this worker's alone."""
        self._loaded = True

    def meet(self) -> None:
        """All workers' models are the same when this returns."""

    def step(self, *args: Any, **kwargs: Any) -> Any:
        if self._loaded:
            raise InvalidArgumentError(
                "load_state_dict() after mercury.fabric: the job goes on with the model that it "
                "has: load before mercury.fabric, which gives all workers the values of worker 0"
            )
        self._vector.check()
        STEPS.pushed("model")
        return super().step(*args, **kwargs)


class ModelPushes(FabricTraining):
    """Asynchronous: the server has the model."""

    share = 1.0  # of what has changed: by so much an update is multiplied

    def __init__(
        self, model: Any, optimizer: Any, names: dict[Any, str], step: Callable[..., Any]
    ) -> None:
        super().__init__(model, optimizer, names, step)
        self._got: Any = None  # the model, as an array

    def begin(self, worker: Worker) -> None:
        super().begin(worker)
        self._got = self._vector.values()

    def exchange(self) -> None:
        """What has changed since the model was got is the update."""
        assert self._worker is not None
        values = self._vector.values()
        update = values - self._got
        if self.share != 1.0:
            update *= np.float32(self.share)
        self._worker.push(update)
        self._got = values  # whatever becomes of getting: no change is pushed twice
        self._get()

    def meet(self) -> None:
        """All workers call it: each waits for the updates of all, and gets the model with them."""
        assert self._worker is not None
        self._worker.settle()
        self._worker.all_reduce(np.zeros(self._worker.shape, np.float32))
        self._get()

    def _get(self) -> None:
        assert self._worker is not None
        self._got = self._worker.get()
        self._vector.put(self._got)


class PushedSteps(ModelPushes):
    """Each step is an update."""

    def __init__(
        self, model: Any, optimizer: Any, names: dict[Any, str], step: Callable[..., Any]
    ) -> None:
        self._kind = type(optimizer)
        self.rule = rule_of(self._kind, optimizer.param_groups)
        super().__init__(model, optimizer, names, step)

    def step(self, *args: Any, **kwargs: Any) -> Any:
        assert self.rule is not None
        with left_to_the_server(self._kind, self._optimizer.param_groups, self.rule):
            result = super().step(*args, **kwargs)
        self.exchange()
        return result


def _by_name(groups: Sequence[dict[str, Any]]) -> dict[str, str]:
    """All groups' options, in words."""
    return dict(item for index in range(len(groups)) for item in told_to(groups, index).items())


class SummedGradients(FabricTraining):
    """Synchronous. Behind the gradients' sums, one number for each says how many workers have it.

    All of it belongs to the thread that trains, and to autograd's while a backward runs.
    """

    def __init__(
        self, model: Any, optimizer: Any, names: dict[Any, str], step: Callable[..., Any]
    ) -> None:
        super().__init__(model, optimizer, names, step)
        self._backward = -1  # autograd's number of the one that is under way
        self._keeps = False
        self._complete = False  # since the last step, all gradients are averages
        self._steps = 0
        self._options = StepOptions(self._compare, is_seldom_compared)
        for parameter in self._names:
            if parameter.requires_grad:
                parameter.register_post_accumulate_grad_hook(self._appeared)

    def first(self) -> Any:
        return np.concatenate([super().first(), np.zeros(len(self._names), np.float32)])

    def _appeared(self, _parameter: Any) -> None:
        backward = torch._C._current_graph_task_id()
        if self._keeps:
            self._complete = False
        elif backward != self._backward:
            self._backward = backward
            torch.autograd.Variable._execution_engine.queue_callback(self._average)

    def _average(self) -> None:
        """All workers come here equally often."""
        assert self._worker is not None
        self._backward = -1
        size, parameters = self._vector.size, list(self._names)
        mine = torch.zeros(size + len(parameters), dtype=torch.float32, device="cpu")
        for place, part in enumerate(self._vector.parts(mine[:size])):
            grad = parameters[place].grad
            if grad is not None:
                if grad.is_sparse:
                    refuse_sparse(self._names[parameters[place]])
                part.copy_(grad.detach())
                mine[size + place] = 1
        sums = torch.from_numpy(self._worker.all_reduce(mine.numpy()))
        means = sums[:size].div_(self._worker.num_workers)
        for parameter, mean, have in zip(parameters, self._vector.parts(means), sums[size:]):
            if have > 0:
                if parameter.grad is None:
                    parameter.grad = torch.empty_like(parameter, requires_grad=False)
                parameter.grad.detach().copy_(mean)
        self._complete = True

    def step(self, *args: Any, **kwargs: Any) -> Any:
        self._steps += 1
        self._options.step(_by_name(self._optimizer.param_groups), self._steps)
        return super().step(*args, **kwargs)

    def _compare(self, _step: int, told: str) -> None:
        assert self._worker is not None
        alike.agree(self._worker, [told])

    def _check(self) -> None:
        if not self._complete:  # all was accumulated alone, or set by hand
            self._average()
        self._complete = False
        super()._check()

    def forget_gradients(self) -> None:
        super().forget_gradients()
        self._complete = False

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Gradients stay this worker's, and add up; the next backward outside averages the sum."""
        before, self._keeps = self._keeps, True
        try:
            yield
        finally:
            self._keeps = before
