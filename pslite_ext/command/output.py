"""What a command prints: a full disk behind stdout is one line on stderr, not a traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable


class UnwritableError(Exception):
    """Stdout takes no more. `code_of` reports it."""


def say(text: str) -> None:
    """Writes `text` and all that was printed before it. A pipe that was closed is raised as is."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UnwritableError(f"stdout cannot be written: {error.strerror}") from error


def code_of(name: str, run: Callable[[], int]) -> int:
    """What a command comes to if its reader has gone or the disk behind stdout is full, too."""
    try:
        try:
            return run()
        finally:
            say("")
    except BrokenPipeError:
        _forget_output()
        return 141
    except UnwritableError as error:
        _forget_output()
        print(f"{name}: {error}", file=sys.stderr)
        return 2


def _forget_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at exit
