"""PyTorch on mercury: `model, optimizer = mercury.wrap(model, optimizer)`.

Nothing here needs MXNet. Servers and the scheduler run the script as far as this, without torch; in
a worker it brings the backend "mercury" of torch.distributed, if torch is there.
"""

from __future__ import annotations

from typing import Any

from pslite_ext.errors import InvalidArgumentError
from pslite_ext.torch import this_worker
from pslite_ext.torch_version import is_too_old

__all__ = [
    "checkpoint",
    "ddp_comm_hook",
    "fabric",
    "local_steps",
    "rank",
    "shared_weights",
    "stats",
    "trace",
    "workers",
    "wrap",
]


def _check_torch() -> None:
    try:
        import torch
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise InvalidArgumentError(
            "pslite_ext.torch needs PyTorch, which is not installed here: pip install torch"
        ) from None
    check_version(torch.__version__)


def check_version(version: str) -> None:
    """Raises for a torch that is too old."""
    if is_too_old(version):
        raise InvalidArgumentError(
            f"pslite_ext.torch needs PyTorch 2.1 or newer; this is {version}: upgrade torch"
        )


def wrap(model: Any, optimizer: Any, wire: Any = None) -> tuple[Any, Any]:
    """Joins the job, takes worker 0's values, and lets `optimizer` step on all workers' gradients.

    Both are returned as the objects that they were. Gradients are averaged, as DDP does. `wire`: as
    what they travel, "float32", "bf16", "fp16" or "int8", or such words by patterns of parameters'
    names; without it, as MERCURY_WIRE says.
    """
    _check_torch()
    from pslite_ext.torch import wrapping

    return wrapping.wrap(model, optimizer, wire)


def local_steps(
    model: Any,
    optimizer: Any,
    outer: Any = None,
    *,
    every: int,
    fragments: Any = 1,
    delay: int = 0,
    alpha: float = 0.0,
    wire: Any = None,
) -> tuple[Any, Any]:
    """Joins the job, takes worker 0's values, and lets each worker train by itself for `every`
    steps, after which all weights come together (DiLoCo). It changes the training:
    docs/local-steps.md.

    Both are returned as the objects that they were. `outer`: a function that makes the outer
    optimizer of a list of tensors; without it, SGD with Nesterov's momentum, as DiLoCo's paper has
    it. `fragments`: in how many parts of the model that is done by turns, or a list of modules;
    `delay`: how many steps before its result is applied a part is sent; `alpha`: how much of a
    worker's own weights is kept then. `wire`: as for `wrap`, but not "auto".
    """
    _check_torch()
    from pslite_ext.torch import local_stepping

    return local_stepping.local_steps(model, optimizer, outer, every, fragments, delay, alpha, wire)


def shared_weights(model: Any) -> Any:
    """In this context, a model in local steps has the weights that all workers have alike.

    with mercury.shared_weights(model):
        torch.save(model.state_dict(), path)
    """
    _check_torch()
    from pslite_ext.torch import local_stepping

    return local_stepping.shared_weights(model)


def fabric(
    model: Any, optimizer: Any, mode: str | None = None, every: int = 1, outer: Any = None
) -> tuple[Any, Any]:
    """Trains under MLfabric (docs/fabric.md): each `optimizer.step()` is an update of the model.

    Both are returned as the objects that they were. `mode`: "async"; "stale:K", where no worker is
    more than K updates ahead of the slowest; or "sync", where gradients are averaged as `wrap`
    does. Without it, what MERCURY_FABRIC_MODE says. `every`: so many steps are one update, in the
    first two modes; `outer`: a function that makes the SGD by which the server adds them, such as
    lambda copies: torch.optim.SGD(copies, lr=0.7).
    """
    _check_torch()
    from pslite_ext.torch.mlfabric import wrapping

    return wrapping.fabric(model, optimizer, mode, every, outer)


def checkpoint(folder: Any, every: int, keep: int = 2, **objects: Any) -> Any:
    """Goes on from the newest checkpoint in `folder`, if there is one, and writes more of them.

    saved = mercury.checkpoint("run", every=100, model=model, optimizer=optimizer)
    for step in range(saved.steps, 10_000): ...; saved.step()

    `objects`: whatever has a `state_dict`. The last `keep` checkpoints are kept.
    """
    _check_torch()
    from pslite_ext.torch import saved_state

    return saved_state.checkpoint(folder, every, keep, objects)


def ddp_comm_hook(state: Any, bucket: Any) -> Any:
    """For DistributedDataParallel.register_comm_hook(None, mercury.ddp_comm_hook)."""
    _check_torch()
    from pslite_ext.torch import ddp_hook

    return ddp_hook.hook(state, bucket)


def rank() -> int:
    """This worker's, which is its own as long as it runs; 0 before it is in a job."""
    return this_worker.rank()


def workers() -> int:
    """How many workers the job has now (docs/elastic.md); 0: this process is in none yet."""
    return this_worker.workers()


def stats() -> dict[str, Any]:
    """This process's live figures (pslite_ext/job/figures.py says which)."""
    from pslite_ext.job import figures

    return figures.now()


def trace(on: bool) -> None:
    """Records from the next iteration on, or no more, here and on the servers.

    The job must have MERCURY_TRACE_DIR. Call it on every worker, at the same step.
    """
    from pslite_ext import _core

    _core.trace_switch(on)


# DDP takes torch's own types there, or none; naming them would need torch.
ddp_comm_hook.__annotations__.clear()


def _process_group(asked: Any, options: Any) -> Any:
    _check_torch()
    from pslite_ext.torch import process_group

    return process_group.create(asked, options)


def _register_backend() -> None:
    """For init_process_group("mercury")."""
    try:
        import torch
        import torch.distributed as dist
    except ModuleNotFoundError:
        return  # whoever needs it will say so
    if is_too_old(torch.__version__):
        return
    if dist.is_available() and not hasattr(dist.Backend, "MERCURY"):
        devices = ["cpu", "cuda"]
        dist.Backend.register_backend("mercury", _process_group, extended_api=True, devices=devices)


this_worker.serve_if_asked()
_register_backend()
this_worker.say_if_forgotten()
