"""A node of a job without MXNet, which starts sooner: it joins, says `joined`, and leaves.

A worker of the rank STAYS_OUT never joins: it says `stays out` and ends when it is killed.
"""

from __future__ import annotations

import os
import sys
import time

from mxnet_plugins import server
from pslite_ext import _core
from pslite_ext.config import Settings


def main() -> int:
    if os.environ["DMLC_ROLE"] != "worker":
        return server.main()
    if os.environ["DMLC_TASK_ID"] == os.environ.get("STAYS_OUT"):
        print("stays out", os.getpid(), flush=True)
        time.sleep(600)
    print("joins", os.getpid(), flush=True)
    _core.start(Settings.from_environment(os.environ).options())
    print("joined", flush=True)
    _core.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
