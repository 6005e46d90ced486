"""What a command prints: a full disk behind stdout is one line on stderr, not a traceback."""

from __future__ import annotations

import sys


class UnwritableError(Exception):
    """Stdout takes no more. `main` reports it."""


def say(text: str) -> None:
    """Writes `text` and all that was printed before it. A pipe that was closed is raised as is."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UnwritableError(f"stdout cannot be written: {error.strerror}") from error
