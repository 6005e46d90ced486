"""The end of a process that multiprocessing has started, and what it has ended of.

Up to Python 3.12 its finalizers see the error that the function has raised. Later ones run when
the error has been dealt with, and only the exit code is left of it: under `fork` and `forkserver`
as it is given to os._exit, under `spawn` as that of any other process.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable
from multiprocessing.util import Finalize
from typing import NoReturn

Ended = Callable[[str, "BaseException | None"], None]  # with the reason, "" if all was well


def ends_as_others_do() -> bool:
    """Whether this process is none of these, or ends like a script of its own."""
    if multiprocessing.parent_process() is None:
        return True
    return sys.version_info >= (3, 13) and multiprocessing.get_start_method() == "spawn"


def skips_atexit() -> bool:
    """Whether this process ends by os._exit, as those do that are forked."""
    started = multiprocessing.parent_process() is not None
    return started and multiprocessing.get_start_method() != "spawn"


def by_code(code: object) -> str:
    return f"it ended with exit code {code}" if code else ""


def at_end(ended: Ended, why: Callable[[BaseException], str]) -> None:
    """Calls it once this process's function is over. `why` makes a line of an error."""
    if sys.version_info >= (3, 13):
        _before_exit(ended)
        return

    def finalize() -> None:
        error = sys.exc_info()[1]
        if isinstance(error, SystemExit):
            ended(by_code(error.code), error)
        else:
            ended("" if error is None else why(error), error)

    Finalize(None, finalize, exitpriority=0)


def _before_exit(ended: Ended) -> None:
    really, process = os._exit, os.getpid()

    def leave(status: int) -> NoReturn:
        os._exit = really
        try:
            if os.getpid() == process:
                ended(by_code(status), None)
        finally:
            really(status)

    os._exit = leave
