"""The other side of the seams in MXNet: called while `import mxnet` is under way.

So this module must not import mxnet.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from pslite_ext.config import NO_JOB, SettingError, under_fabric, wanted_van

# MXNet goes by what a name contains, so we do: 'dist_device_sync', 'dist', and 'dist_foo' as well.
_DISTRIBUTED = "dist"
_ASYNCHRONOUS = "_async"


def is_asynchronous(name: str) -> bool:
    """Whether a distributed store of this name applies gradients one by one as they come."""
    return _ASYNCHRONOUS in name.lower()


def create(name: str) -> Any:
    """A store of ours under the name that the script asked for."""
    if _under_fabric():
        from mxnet_plugins.fabric.store import FabricKVStore

        return FabricKVStore(name, synchronous=not is_asynchronous(name))
    from mxnet_plugins.kvstore import MercuryKVStore

    return MercuryKVStore(name, asynchronous=is_asynchronous(name))


class Registry(dict[str, Callable[[], Any]]):
    """MXNet's registry, in which every distributed name is ours that no class was registered by.

    What the registry does not have, MXNet creates itself. Its own distributed store would look for
    a scheduler that is none of its kind, forever.
    """

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or (isinstance(name, str) and _DISTRIBUTED in name)

    def __missing__(self, name: str) -> Callable[[], Any]:
        if name not in self:
            raise KeyError(name)

        def store() -> Any:
            return create(name)

        return store


def serve() -> None:
    """In a server or scheduler of a job of ours, runs that and exits: it needs nothing of MXNet."""
    role = os.environ.get("DMLC_ROLE", "").strip()
    if _wanted() and _under_fabric() and role in ("server", "replica", "scheduler"):
        from mxnet_plugins.fabric import job

        sys.exit(job.serve())
    if _wanted() and role in ("server", "scheduler"):
        from pslite_ext.job import serving

        sys.exit(serving.main())


def activate(base: Any) -> None:
    """Gives `base` a registry with our stores."""
    if _wanted():
        base.kv_registry = Registry(base.kv_registry)


def in_no_job(name: str) -> None:
    """A distributed store was asked for where nobody said what job this is."""
    from mxnet.base import MXNetError

    raise MXNetError(f"mx.kv.create('{name}'): {NO_JOB}")


def _under_fabric() -> bool:
    try:
        return under_fabric(os.environ)
    except SettingError as error:
        sys.exit(f"mercury: {error}")


def _wanted() -> bool:
    try:
        return bool(wanted_van(os.environ))
    except SettingError as error:
        sys.exit(f"mercury: {error}")
