"""`fabric`: a model and its optimizer, checked, and in a job under MLfabric."""

from __future__ import annotations

import sys
from typing import Any

from pslite_ext.errors import InvalidArgumentError
from pslite_ext.fabric import alike, current_worker, register_as_worker
from pslite_ext.fabric.options import mode_for
from pslite_ext.fabric_words import staleness
from pslite_ext.job import figures
from pslite_ext.job.leaving import at_exit
from pslite_ext.torch import this_worker
from pslite_ext.torch.agreement import described, settings_of
from pslite_ext.torch.checks import check, say_not_given
from pslite_ext.torch.mlfabric import first_values
from pslite_ext.torch.mlfabric.local import LocalPushes, local_of
from pslite_ext.torch.mlfabric.steps import CALLER, FabricTraining, PushedSteps, SummedGradients
from pslite_ext.torch.optimizers import bare_step, step_by


def fabric(
    model: Any, optimizer: Any, mode: str | None, every: Any = 1, outer: Any = None
) -> tuple[Any, Any]:
    settings = this_worker.settings_under_fabric()
    chosen = mode_for(settings, mode)
    synchronous = staleness(chosen) == 0
    local = local_of(every, outer)
    if local is not None and synchronous:
        raise InvalidArgumentError(
            f"{CALLER}: in step there are no local steps under MLfabric: take mercury.local_steps, "
            'without MERCURY_FABRIC, or mode="async"'
        )
    names = check(model, optimizer, CALLER)
    if current_worker() is not None:
        raise InvalidArgumentError(
            f"{CALLER}: under MLfabric a process has one model, with one optimizer: this is the "
            "second"
        )
    step = bare_step(type(optimizer))
    training: FabricTraining
    if local is not None:
        training = LocalPushes(model, optimizer, names, step, local)
    else:
        training = (SummedGradients if synchronous else PushedSteps)(model, optimizer, names, step)
        if training.rule and training.rule.momentum:
            _say_of_earlier_steps(optimizer)
    at_exit(figures.say)  # after this worker has left
    worker = register_as_worker(training.first(), training.rule, "" if synchronous else chosen)
    this_worker.has_joined_fabric(worker.rank, worker.num_workers)
    figures.serve(settings.values)
    if worker.rank == 0 and worker.num_workers > 1:
        say_not_given(optimizer, names, CALLER)
    trained = training.names()
    others = {parameter: name for parameter, name in names.items() if parameter not in trained}
    others.update((buffer, name) for name, buffer in model.named_buffers())
    said = [
        f"the mode {chosen}",
        f"the optimizer {type(optimizer).__name__}",
        *([] if local is None else [str(local)]),
        *(f"'{described(name, its, 'none')}'" for its, name in (trained | others).items()),
    ]
    alike.agree(worker, said + (settings_of(trained, optimizer) if synchronous else []))
    first_values.take(worker, list(others))
    training.begin(worker)
    step_by(optimizer, training, in_parts=False)
    return model, optimizer


def _say_of_earlier_steps(optimizer: Any) -> None:
    """Of a checkpoint, say."""
    if any("momentum_buffer" in state for state in optimizer.state.values()):
        print(
            "mercury: the optimizer has momentum of earlier steps, which stays behind: the server "
            "applies momentum, and begins without any",
            file=sys.stderr,
        )
