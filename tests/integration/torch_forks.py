"""Imports PyTorch once, which takes seconds, and forks workers that have it.

Each line of its standard input is a worker: script, arguments, environment, log. It prints that
worker's number, and, when it has ended, the number and the exit code.
"""

from __future__ import annotations

import ctypes
import json
import os
import runpy
import select
import signal
import sys
from typing import Any

import torch
import torch.distributed
from torch.nn.parallel import DistributedDataParallel  # noqa: F401

LOOK_S = 0.02


def tell(**what: int) -> None:
    print(json.dumps(what), flush=True)


def become(asked: dict[str, Any]) -> None:
    """In the child: a process of its own, as if it had been started."""
    os.setsid()
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    log = os.open(asked["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for to, what in ((0, nothing), (1, log), (2, log)):
        os.dup2(what, to)
    os.close(log)
    os.close(nothing)
    os.environ.clear()
    os.environ.update(asked["env"])
    sys.argv[:] = [asked["script"], *asked["words"]]


def serve(asking: Any) -> str:
    """In each child, returns the script that it is to run; here, "" when nobody asks any more."""
    while True:
        if select.select([asking], [], [], LOOK_S)[0]:
            line = asking.readline()
            if not line:
                return ""
            asked = json.loads(line)
            child = os.fork()
            if child == 0:
                become(asked)
                return str(asked["script"])
            tell(started=child)
        try:
            child, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            continue
        if child:
            tell(ended=child, code=os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    torch.optim.SGD([torch.zeros(1)])  # the first optimizer imports as much again
    with open(0, "rb", buffering=0, closefd=False) as asking:  # nothing waits in a buffer
        script = serve(asking)
    if script:
        runpy.run_path(script, run_name="__main__")
