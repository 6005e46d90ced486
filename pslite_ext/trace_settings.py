"""Settings of traces that are more than a number: which steps, and a directory that will do."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

from pslite_ext.setting import SettingError

FORMATS = ("text", "binary")
PROBE_BYTES = 64 << 10  # what a trace needs at the very least


def check_trace_format(name: str) -> None:
    if name not in FORMATS:
        raise SettingError(f"MERCURY_TRACE_FORMAT is '{name}'; allowed: {', '.join(FORMATS)}")


def trace_steps(text: str) -> tuple[int, int]:
    """The first step, and the one at which recording ends; 0: it does not."""
    if not text:
        return 0, 0
    found = re.fullmatch(r"(\d{0,9}):(\d{0,9})", text)
    first, end = (int(found[1] or 0), int(found[2] or 0)) if found else (0, 0)
    if not found or (found[2] and end <= first):
        raise SettingError(
            f"MERCURY_TRACE_STEPS is '{text}'; allowed: FIRST:END, such as 10:50 for the steps 10 "
            "to 49, or 10: for all from 10 on"
        )
    return first, end


def of_restart(folder: str, number: int | str) -> str:
    """Where a job that was started again writes what the first one wrote there."""
    return str(Path(folder) / f"restart-{number}")


def check_trace_directory(name: str) -> None:
    """Before this node registers, and so before any node of this run has made a file."""
    if not name:
        return
    folder = Path(name)

    def refuse(why: str) -> SettingError:
        return SettingError(f"MERCURY_TRACE_DIR is '{name}', {why}")

    try:
        folder.mkdir(parents=True, exist_ok=True)
        others = sorted(f.name for f in folder.iterdir() if f.name.startswith("trace_"))
    except OSError as error:
        raise refuse(f"which cannot be made or read: {error.strerror}") from None
    if others:
        raise refuse(
            f"which holds a trace of another run ({others[0]}); give each run a directory of its "
            "own"
        )
    try:
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(bytes(PROBE_BYTES))
            probe.flush()
            os.fsync(probe.fileno())
    except OSError as error:
        raise refuse(f"which cannot be written to: {error.strerror}") from None
