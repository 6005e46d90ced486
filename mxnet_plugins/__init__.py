"""mercury-ps inside MXNet: the stores that take the names `dist_sync` and so on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["announce", "stats"]


def announce(store: Any, tensors: Iterable[tuple[Any, ...]]) -> None:
    """Tells the van what is to come: (key, name, priority) of each tensor of `store`.

    For scripts that drive a KVStore by hand; gluon's Trainer and Module do it themselves. Tensors
    that are not announced are accepted all the same.
    """
    store.announce(tensors)


def stats() -> dict[str, Any]:
    """This process's live figures (pslite_ext/job/figures.py says which)."""
    from pslite_ext.job import figures

    return figures.now()
