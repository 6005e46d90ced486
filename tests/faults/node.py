"""A node of a job without MXNet, which starts sooner: it joins, says `joined`, and leaves.

The worker of the rank STAYS_OUT joins only when the file GO exists, and workers leave only when the
file STOP does, if they are told one. Workers of the ranks HAS_STORE join as a script does, with
MXNet. Who has a name that begins with ENDS_FIRST ends before it has joined. Who comes to a job that
has begun waits until it is let in.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from pslite_ext import _core
from pslite_ext.config import Settings
from pslite_ext.job import serving
from pslite_ext.saving import letting_in


def await_file(name: str) -> None:
    while not Path(name).exists():
        time.sleep(0.05)


def main() -> int:
    name = f"{os.environ['DMLC_ROLE']} {os.environ.get('DMLC_TASK_ID')}"
    if name.startswith(os.environ.get("ENDS_FIRST", "nobody")):
        return 0
    if os.environ["DMLC_ROLE"] != "worker":
        return serving.main()
    if os.environ["DMLC_TASK_ID"] == os.environ.get("STAYS_OUT"):
        print("stays out", os.getpid(), flush=True)
        await_file(os.environ.get("GO", "/no/such/file"))
    print("joins", os.getpid(), flush=True)
    if os.environ["DMLC_TASK_ID"] in os.environ.get("HAS_STORE", "").split():
        from mxnet_plugins import this_worker

        this_worker.join()
    else:
        _core.start(Settings.from_environment(os.environ).options())
    print("joined", flush=True)
    if newcomer := _core.outside():
        letting_in.take(newcomer)
    if "STOP" in os.environ:
        await_file(os.environ["STOP"])
    _core.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
