"""How a program of the lab ends: with its exit code, whatever becomes of its output; and on SIGTERM
as on Ctrl-C, with what it has begun taken down."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from typing import NoReturn

from pslite_ext.command.output import code_of


def run_program(name: str, main: Callable[[list[str]], int]) -> NoReturn:
    """With this process's arguments."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        sys.exit(code_of(name, lambda: main(sys.argv[1:])))
    except KeyboardInterrupt:
        sys.exit(130)
