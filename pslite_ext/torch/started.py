"""A server or the scheduler that this worker has started beside itself.

It outlives this worker until the job is over; if it ends before the job has begun, this worker
knows its last lines.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from pslite_ext.launch.output import LineCutter
from pslite_ext.launch.scheduler_words import how_it_ended
from pslite_ext.launch.supervise import CLOSED_WITHIN_S

OURS = Path(__file__).resolve().parents[2]
SERVING = OURS / "pslite_ext" / "serving"
TAIL_LINES, LINE_CHARACTERS = 20, 200


class Started:
    def __init__(self, name: str, environ: Mapping[str, str]) -> None:
        self.name = name
        self._tail: deque[str] = deque(maxlen=TAIL_LINES)
        paths = [environ["PYTHONPATH"]] if environ.get("PYTHONPATH") else []
        if OURS.name not in ("site-packages", "dist-packages"):
            paths.insert(0, str(OURS))
        shown = os.dup(2)
        reads, writes = os.pipe()
        try:
            self._child = subprocess.Popen(
                [sys.executable, str(SERVING), str(shown), str(reads)],
                env={**environ, "MERCURY_LAUNCHED": "1", "PYTHONPATH": ":".join(paths)},
                stdin=subprocess.PIPE,
                stderr=writes,
                pass_fds=(shown, reads),
                start_new_session=True,
            )
        except BaseException:
            os.close(reads)
            raise
        finally:
            os.close(writes)
            os.close(shown)
        self._show = threading.Thread(
            target=self._hear, args=(reads,), daemon=True, name="mercury-beside"
        )
        self._show.start()

    def end(self) -> str:
        """How it has ended, and its last lines; "" while it has not."""
        code = self._child.poll()
        if code is None:
            return ""
        self._show.join(CLOSED_WITHIN_S)
        lines = [line[:LINE_CHARACTERS] for line in self._tail] or ["(it printed nothing)"]
        how = f"{self.name} {how_it_ended(code)} before the job had begun; its last lines:"
        return "\n    ".join([how, *lines])

    def forget(self) -> None:
        """In a child of this process: whose end it waits for is not that child's."""
        assert self._child.stdin is not None
        self._child.stdin.close()

    def _hear(self, reads: int) -> None:
        """Until it prints where we do, or nothing more."""
        lines = LineCutter()
        with open(reads, "rb", buffering=0) as pipe:
            while some := pipe.read(1 << 16):
                self._tail.extend(lines.take(some))
                with suppress(OSError):  # nobody may see what we print
                    while some:
                        some = some[os.write(2, some) :]
        self._tail.extend(lines.rest())
