"""Runs a worker's script, its first argument; other roles do what theirs is, without PyTorch."""

from __future__ import annotations

import os
import runpy
import sys

from mxnet_plugins import server

if __name__ == "__main__":
    if os.environ["DMLC_ROLE"] != "worker":
        sys.exit(server.main())
    del sys.argv[0]
    runpy.run_path(sys.argv[0], run_name="__main__")
