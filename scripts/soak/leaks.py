"""What a job has left behind: processes of its sessions, files where only it puts any."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

# What has just been told to end, or is being taken down by the kernel, may take so long.
GONE_WITHIN_S = 5.0


def processes(sessions: Mapping[int, str]) -> list[str]:
    """Those that live, of sessions by the number of who leads them."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except OSError:  # it has ended
            continue
        state, _, _, session = text[text.rindex(")") + 2 :].split()[:4]
        if state != "Z" and int(session) in sessions:
            name = text[text.index("(") + 1 : text.rindex(")")]
            owner = sessions[int(session)]
            found.append(f"process {stat.parent.name} ({name}) of {owner}")
    return found


def files(folders: Sequence[Path]) -> list[str]:
    return [
        f"{folder.name}/{path.relative_to(folder)}"
        for folder in folders
        for path in sorted(folder.rglob("*"))
    ]


def lasting(look: Callable[[], list[str]], within_s: float = GONE_WITHIN_S) -> list[str]:
    """What is still seen when there was time for it to go."""
    deadline = time.monotonic() + within_s
    while (left := look()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left
