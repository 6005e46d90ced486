"""mercury-ps inside MXNet: the stores that take the names `dist_sync` and so on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["announce", "checkpoint", "stats"]


def announce(store: Any, tensors: Iterable[tuple[Any, ...]]) -> None:
    """Tells the van what is to come: (key, name, priority) of each tensor of `store`.

    For scripts that drive a KVStore by hand; gluon's Trainer and Module do it themselves. Tensors
    that are not announced are accepted all the same.
    """
    store.announce(tensors)


def checkpoint(folder: Any, every: int, keep: int = 2, **objects: Any) -> Any:
    """Goes on from the newest checkpoint in `folder`, if there is one, and writes more of them.

    saved = mxnet_plugins.checkpoint("run", every=100, net=net, trainer=trainer)
    for step in range(saved.steps, 10_000): ...; saved.step()

    `objects`: gluon's Blocks and Trainers, and what has a `state_dict`, before the Trainer's first
    step. The last `keep` checkpoints are kept.
    """
    from mxnet_plugins import saved_state

    return saved_state.checkpoint(folder, every, keep, objects)


def stats() -> dict[str, Any]:
    """This process's live figures (pslite_ext/job/figures.py says which)."""
    from pslite_ext.job import figures

    return figures.now()
