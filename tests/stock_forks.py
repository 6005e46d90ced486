"""Imports the stock MXNet once and forks nodes of its jobs, whatever their role."""

from __future__ import annotations

from mxnet.kvstore import kvstore_server

from tests.forking import fork_for_who_asks

if __name__ == "__main__":
    # What `import mxnet` comes to in a node of a job: a server serves, and ends.
    fork_for_who_asks(kvstore_server._init_kvstore_server_module)
