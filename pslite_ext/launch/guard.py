"""What ends a process's children and all that these have started if it dies without doing so.

The kernel kills a child whose parent dies, but not what that child has started: a script that runs
the command, and does not become it, would leave the command behind. So a shell outlives this
process, if only for a moment: it hears the end on its standard input. The children's own standard
inputs stay as they are.

Thread-safety: any thread may call.
"""

from __future__ import annotations

import subprocess
import threading
from contextlib import suppress

# Lines are `+ GROUP` and `- GROUP`. Of its own group nobody else is, and it holds nobody's output.
SCRIPT = """\
groups=' '
while read -r what group; do
    case $what in
        +) groups="$groups$group " ;;
        -) case $groups in
            *" $group "*) groups="${groups%% $group *} ${groups#* $group }" ;;
        esac ;;
    esac
done
left() {
    for group in $groups; do kill -s 0 -- "-$group" && return 0; done
    return 1
}
for group in $groups; do kill -s TERM -- "-$group"; done
for moment in 1 2 3 4 5; do
    left || exit 0
    sleep 1
done
for group in $groups; do kill -s KILL -- "-$group"; done
"""


class Guard:
    """Of process groups. It starts with the first one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards what follows
        self._shell: subprocess.Popen[bytes] | None = None

    def watch(self, group: int) -> None:
        with self._lock:
            if self._shell is None:
                self._shell = subprocess.Popen(
                    ["sh", "-c", SCRIPT],
                    bufsize=0,
                    cwd="/",
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            self._say(f"+ {group}")

    def forget(self, group: int) -> None:
        """It has ended: its number may become another's."""
        with self._lock:
            self._say(f"- {group}")

    def _say(self, line: str) -> None:
        if self._shell is not None and self._shell.stdin is not None:
            with suppress(OSError):  # somebody has killed it
                self._shell.stdin.write(f"{line}\n".encode())


GUARD = Guard()
