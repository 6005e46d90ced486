"""How many iterations a worker may begin, in a file that the bench writes and the worker reads."""

from __future__ import annotations

import time
from pathlib import Path

_LOOK_S = 0.005  # between a worker's looks


def allow(file: Path, iterations: int) -> None:
    """So many in all, those that are over too. Nobody ever reads half a number."""
    new = file.with_suffix(".new")
    new.write_text(str(iterations))
    new.replace(file)


def until_allowed(file: Path, turn: int) -> None:
    while int(file.read_text()) <= turn:
        time.sleep(_LOOK_S)
