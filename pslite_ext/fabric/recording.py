"""What a job's scheduler hears and decides, in a file: `trace_fabric.jsonl`, a line for each event.

The file never stops, delays or fails the job: what cannot be written ends it, with one warning.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

NAME = "trace_fabric.jsonl"
VERSION = 1
_TURN_S = 0.5


class Recording:
    """Writes, in a thread of its own, what `take` gives, until it is closed."""

    def __init__(self, folder: str, job: Mapping[str, object], take: Callable[[], str]) -> None:
        self._path = Path(folder) / NAME
        self._take = take
        self._over = threading.Event()
        clocks = {"t": time.monotonic(), "since_1970": time.time()}
        head = {**clocks, "event": "job", "version": VERSION, **job}
        self._thread = threading.Thread(
            target=self._write, args=(head,), daemon=True, name="mercury-record"
        )
        self._thread.start()

    def close(self) -> None:
        self._over.set()
        self._thread.join()

    def _write(self, head: Mapping[str, object]) -> None:
        try:
            with self._path.open("x", encoding="ascii") as file:
                file.write(json.dumps(head) + "\n")
                over = False
                while not over:
                    file.flush()
                    over = self._over.wait(_TURN_S)
                    file.write(self._take())  # the last time after all else has ended
        except OSError as error:
            why = f"{self._path}: {error.strerror or error}"
            print(f"mercury: {why}; nothing is recorded from here on", file=sys.stderr)
