"""What a process whose DMLC_ROLE is server or scheduler does, instead of the user's script.

Nothing here unpickles anything and no user code runs: a server only sums.
"""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType

from pslite_ext import _core, dump
from pslite_ext.config import NO_REPLICAS, SettingError, Settings
from pslite_ext.errors import PsliteError
from pslite_ext.job import figures
from pslite_ext.job.leaving import exit_code
from pslite_ext.job.starter import Starter
from pslite_ext.launch.scheduler_words import Ending

_LOOK_S = 0.1
# For a job that has begun to be known here, too; and for those that come late, once nobody listens.
_BEGUN_S = 5.0
_LATE_S = 10.0


def _terminate(number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + number)


def end_when_told() -> None:
    """On SIGTERM, as Python ends: what must be done before is done."""
    signal.signal(signal.SIGTERM, _terminate)


def _tell_of_end(ended: Ending) -> None:
    worker = ended.role == "worker"
    while not _core.other_ended(worker, ended.rank, ended.how, ended.failed):
        time.sleep(_LOOK_S)  # it has not begun to listen yet


def _see_late_ones(left: threading.Event) -> None:
    """Until all that were started with us have been told that the start has failed."""
    deadline = math.inf
    while _core.awaits_late() and time.monotonic() < deadline:
        if left.is_set():
            deadline = min(deadline, time.monotonic() + _LATE_S)
        time.sleep(_LOOK_S)


def main(on_begin: Callable[[], None] = lambda: None) -> int:
    """Serves until the job is over; the process's exit code. `on_begin`: called once it begins."""
    try:
        settings = Settings.from_environment(os.environ)
        if settings.values["DMLC_NUM_REPLICA"]:
            raise SettingError(NO_REPLICAS)  # rather than to serve without them
    except SettingError as error:
        print(f"mercury: {error}", file=sys.stderr)
        return 2
    end_when_told()
    reason = "it was stopped"
    launched = bool(settings.values["MERCURY_LAUNCHED"])
    begun, left = threading.Event(), threading.Event()

    def starter_left() -> None:
        left.set()
        if not begun.wait(_BEGUN_S):
            os.kill(os.getpid(), signal.SIGTERM)  # nobody else will end us

    starter = Starter(launched, _tell_of_end, starter_left)
    try:
        dump.watch(str(settings.values["DMLC_ROLE"]), str(settings.values["MERCURY_TRACE_DIR"]))
        _core.start(settings.options())
        begun.set()
        on_begin()
        figures.serve(settings.values)
        _core.serve()
        reason = ""
    except PsliteError as error:
        begun.set()  # we end by ourselves
        if launched:
            _see_late_ones(left)
        starter.say(error)
        # The core has logged what happened to the job; a start that failed has told nobody yet.
        if not _core.failed():
            print(f"mercury: {error}", file=sys.stderr)
        return exit_code(_core.failed_elsewhere())
    except KeyboardInterrupt:
        reason = "it was interrupted"
        return 130
    finally:
        try:
            figures.say()
        finally:
            _core.finish(reason)
    return 0
