"""The other side of the seam in MXNet's kvstore package: called while `import mxnet` is under way.

So this module must not import mxnet.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import Any

from pslite_ext.config import SettingError, wanted_van

STORES = (
    "dist",
    "dist_sync",
    "dist_async",
    "dist_device_sync",
    "dist_sync_device",
    "dist_device_async",
    "dist_async_device",
)


def create(name: str) -> Any:
    """A store of ours under the name that the script asked for."""
    from mxnet_plugins.kvstore import MercuryKVStore

    return MercuryKVStore(name)


def activate(base: Any) -> None:
    """Puts our stores into `base`'s registry; in a server or scheduler, runs that and exits."""
    try:
        if not wanted_van(os.environ):
            return
    except SettingError as error:
        sys.exit(f"mercury: {error}")
    if os.environ.get("DMLC_ROLE", "").strip() in ("server", "scheduler"):
        from mxnet_plugins import server

        sys.exit(server.main())
    for name in STORES:
        base.kv_registry[name] = partial(create, name)
