"""Runs scripts in processes forked from one that has imported what takes seconds.

Each line of standard input is a process: script (or -c and code), arguments, environment, log. That
process's number is printed, and, when it has ended, the number and the exit code.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import runpy
import select
import signal
import sys
import types
from collections.abc import Callable
from typing import Any

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


def serve(asking: Any) -> dict[str, Any] | None:
    """In each child, returns what it is to run; here, nothing when nobody asks any more."""
    alive = 0
    while True:
        if select.select([asking], [], [], LOOK_S if alive else None)[0]:
            line = asking.readline()
            if not line:
                return None
            asked: dict[str, Any] = json.loads(line)
            child = os.fork()
            if child == 0:
                become(asked)
                return asked
            alive += 1
            tell(started=child)
        child, status = os.waitpid(-1, os.WNOHANG) if alive else (0, 0)
        if child:
            alive -= 1
            tell(ended=child, code=os.waitstatus_to_exitcode(status))


def run(script: str, words: list[str]) -> None:
    if script == "-c":
        code, *words = words
        sys.argv[:] = [script, *words]
        sys.modules["__main__"] = main = types.ModuleType("__main__")
        exec(compile(code, "<string>", "exec"), main.__dict__)
    else:
        sys.argv[:] = [script, *words]
        runpy.run_path(script, run_name="__main__")


def fork_for_who_asks(begin: Callable[[], object] = lambda: None) -> None:
    """`begin` is called in each child, before its script."""
    gc.freeze()  # what is here already is no garbage: no child copies it to see that, at its end
    with open(0, "rb", buffering=0, closefd=False) as asking:  # nothing waits in a buffer
        asked = serve(asking)
    if asked is not None:
        begin()
        run(asked["script"], asked["words"])
