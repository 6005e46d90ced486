"""All workers of a job as forks of one process: what they import, is imported once.

    python -m scripts.lab.systems.forked MODULE CONFIG

Thirty workers that import torch one by one keep two cores busy for half a minute. Each worker lives
in its host's network, runs MODULE's main(), and ends as a process of its own would.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import sys
import traceback
from collections.abc import Callable

NAMESPACES = "LAB_NAMESPACES"  # names the workers' networks, by rank
_FOLDER = "/run/netns"
_CLONE_NEWNET = 0x40000000


def enter(namespace: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    where = os.open(os.path.join(_FOLDER, namespace), os.O_RDONLY)
    if libc.setns(where, _CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), f"network {namespace}")
    os.close(where)


def _live(rank: int, namespace: str, main: Callable[[], None]) -> int:
    enter(namespace)
    os.environ.update(LAB_RANK=str(rank), DMLC_TASK_ID=str(rank))
    os.environ["DMLC_NODE_HOST"] = os.environ["LAB_WORKERS"].split(",")[rank]
    main()
    return 0


def start(namespaces: list[str], main: Callable[[], None]) -> int:
    """The code of the first that fails; 0: none has."""
    for rank, namespace in enumerate(namespaces):
        if os.fork() == 0:
            code = 1
            try:
                code = _live(rank, namespace, main)
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                os._exit(code)
    for _ in namespaces:
        _, status = os.wait()
        if status != 0:
            return os.waitstatus_to_exitcode(status) or 1
    return 0


def main() -> int:
    module = importlib.import_module(sys.argv[1])
    sys.argv = [sys.argv[1], *sys.argv[2:]]
    return start(os.environ[NAMESPACES].split(","), module.main)


if __name__ == "__main__":
    sys.exit(main())
