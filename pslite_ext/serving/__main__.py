"""A server or the scheduler, as a worker starts it beside itself (pslite_ext/torch/started.py).

Python is told to run this folder, so it looks for modules here, where nothing else is, and not in
the working directory, where anything may be.

Until the job begins, standard error is a pipe: the worker shows what is in it, and has the last
lines if this process ends. From then on it is what the worker's is, who may end before the job.
"""

from __future__ import annotations

import os
import select
import sys
from contextlib import suppress


class StandardError:
    """`shown`: what it is at last; `pipe`: where the worker reads what it is at first."""

    def __init__(self, shown: int, pipe: int) -> None:
        self._shown = shown
        self._pipe = pipe
        self._is_pipe = True

    def show(self) -> None:
        if not self._is_pipe:
            return
        self._is_pipe = False
        sys.stderr.flush()
        os.dup2(self._shown, 2)
        if self.nobody_reads():
            os.set_blocking(self._pipe, False)
            with suppress(BlockingIOError):
                while some := os.read(self._pipe, 1 << 16):
                    os.write(2, some)
        os.close(self._pipe)
        os.close(self._shown)

    @staticmethod
    def nobody_reads() -> bool:
        """The worker has ended: standard input, which it never writes to, tells."""
        poll = select.poll()
        poll.register(0, 0)
        return any(what & select.POLLHUP for _, what in poll.poll(0))


def main() -> int:
    error = StandardError(*map(int, sys.argv[1:]))
    try:
        from pslite_ext.job import serving

        return serving.main(error.show)
    finally:
        if error.nobody_reads():
            error.show()


sys.exit(main())
