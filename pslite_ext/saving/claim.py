"""Whether another job writes into a folder: the first worker of each holds a file there.

The system lets go of it as its process ends, by whatever, and forked children do not hold it. Of
processes on other hosts nothing is said: a host that died may seem to hold it for long.
"""

from __future__ import annotations

import fcntl
import os
import struct
import time
from pathlib import Path
from typing import BinaryIO

FILE = ".in-use"
PATIENCE_S = 10.0  # for a job that is ending
_LOOK_S = 0.1
_FLOCK = struct.Struct("hhqqi4x")  # as a 64-bit Linux has it: type, whence, start, length, process


class FolderInUseError(Exception):
    """The text is the number of the process, of this host, that holds it."""


def hold(folder: Path) -> BinaryIO | None:
    """Held until it is closed. None: there can be no such file."""
    try:
        file = open(folder / FILE, "ab")  # noqa: SIM115
    except OSError:
        return None
    deadline = time.monotonic() + PATIENCE_S
    while not _is_held(file) and (process := _holder(file)):
        if time.monotonic() > deadline:
            file.close()
            raise FolderInUseError(process)
        time.sleep(_LOOK_S)
    return file


def _is_held(file: BinaryIO) -> bool:
    """By us now."""
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _holder(file: BinaryIO) -> int:
    """0: none that runs here."""
    try:
        found = fcntl.fcntl(file, fcntl.F_GETLK, _FLOCK.pack(fcntl.F_WRLCK, 0, 0, 0, 0))
    except OSError:  # files cannot be held there
        return 0
    kind, *_, process = _FLOCK.unpack(found)
    is_here = kind != fcntl.F_UNLCK and process > 0 and os.path.exists(f"/proc/{process}")
    return process if is_here else 0
