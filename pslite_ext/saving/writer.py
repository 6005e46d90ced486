"""Writes beside training: one checkpoint at a time, in a thread of its own.

What cannot be written is said, and costs that checkpoint alone: training goes on. Python waits for
the thread before it ends.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable


class Writer:
    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._slow_said = False

    def write(self, step: int, work: Callable[[], None]) -> None:
        """Once the one before is over, for which training waits."""
        self.wait(step)
        name = "mercury-checkpoint"
        self._thread = threading.Thread(target=self._run, args=(step, work), name=name)
        self._thread.start()

    def wait(self, due: int | None = None) -> None:
        """Until nothing is being written. `due`: because the checkpoint of that step is."""
        if due is not None and self._thread is not None and self._thread.is_alive():
            self._say_slow(due)
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()

    def _say_slow(self, step: int) -> None:
        if not self._slow_said:
            self._slow_said = True
            print(
                f"mercury: the checkpoint of step {step} is due, and the one before is still being "
                "written: training waits for it (write less often)",
                file=sys.stderr,
            )

    def _run(self, step: int, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:  # of any kind: training does not end of it
            print(
                f"mercury: the checkpoint of step {step} was not written: {error}; training goes "
                "on",
                file=sys.stderr,
            )
