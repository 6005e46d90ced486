"""Imports MXNet once and forks workers of jobs of ours that have it."""

from __future__ import annotations

from mxnet.kvstore import kvstore_server

import mxnet_plugins.fabric.store
import mxnet_plugins.kvstore  # noqa: F401
from tests.forking import fork_for_who_asks

if __name__ == "__main__":
    # What `import mxnet` comes to in a worker of a job: its stores become ours.
    fork_for_who_asks(kvstore_server._init_kvstore_server_module)
