"""`wrap`: a model and its optimizer, checked, and in the job."""

from __future__ import annotations

import itertools
import sys
from typing import Any

import torch

from pslite_ext import _core
from pslite_ext.job.wire import Wire
from pslite_ext.torch import this_worker
from pslite_ext.torch.alone import Alone
from pslite_ext.torch.checks import WRAP, check, check_time, say_not_given
from pslite_ext.torch.optimizers import bare_step, step_by, steps_in_parts
from pslite_ext.torch.saved_state import trained
from pslite_ext.torch.training import Training
from pslite_ext.torch.values import type_name

models = itertools.count()  # whose training is ours


def _say_of_batch_norm(model: Any) -> None:
    """It asks torch's process group for the other workers' statistics, and does without one."""
    has_group = torch.distributed.is_available() and torch.distributed.is_initialized()
    if not has_group and any(isinstance(m, torch.nn.SyncBatchNorm) for m in model.modules()):
        print(
            "mercury: nn.SyncBatchNorm finds no process group, so each worker normalizes by its "
            "own batch alone: call torch.distributed.init_process_group before training",
            file=sys.stderr,
        )


def _say_of_max_norm(model: Any) -> None:
    """It changes rows in the forward pass, and each worker's batch has other rows."""
    kinds = (torch.nn.Embedding, torch.nn.EmbeddingBag)
    for name, module in model.named_modules():
        if isinstance(module, kinds) and module.max_norm is not None:
            print(
                f"mercury: '{name}' has max_norm, by which each worker changes the rows of its own "
                "batch alone, so weights will differ between workers: leave max_norm out",
                file=sys.stderr,
            )


def _training(
    model: Any, optimizer: Any, names: dict[Any, str], workers: int, wire: Wire
) -> Training | Alone:
    step = bare_step(type(optimizer))
    if workers == 1 == _core.places():
        return Alone(model, optimizer, names, step)
    _say_of_batch_norm(model)
    _say_of_max_norm(model)
    if _core.rank() == 0:
        say_not_given(optimizer, names, WRAP)
    return Training(next(models), model, optimizer, names, workers, step, wire)


def wrap(model: Any, optimizer: Any, wire: Any) -> tuple[Any, Any]:
    names = check(model, optimizer)
    check_time(model, optimizer, WRAP)
    Wire(wire).check((name, type_name(parameter.dtype)) for parameter, name in names.items())
    workers = this_worker.join()
    training = _training(model, optimizer, names, workers, Wire(wire, _core.wire()))
    step_by(optimizer, training, steps_in_parts(optimizer))
    trained.append((model, optimizer))
    this_worker.at_end(training.synchronize)
    return model, optimizer
