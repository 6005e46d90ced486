"""What a process whose DMLC_ROLE is server or scheduler does, instead of the user's script.

It runs inside `import mxnet` and ends the process, as upstream's does. Nothing here unpickles
anything and no user code runs: a server only sums.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from types import FrameType

from pslite_ext.config import SettingError, Settings
from pslite_ext.errors import FAILED_ELSEWHERE, PsliteError


def _terminate(number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + number)


_LOOK_S = 0.1
_leaving = threading.Lock()


def _finish(reason: str) -> None:
    """Returns when this process has left, whichever thread said so first."""
    from pslite_ext import _core

    with _leaving:
        _core.finish(reason)


def _hear_launcher() -> None:
    """The launcher writes a line when a process has failed, which may not have joined yet."""
    from pslite_ext import _core

    heard = b""
    while b"\n" not in heard:
        some = os.read(0, 4096)
        if not some:
            return
        heard += some
    reason = heard.split(b"\n")[0].decode(errors="replace")
    while not _core.failed():
        _finish(reason)
        time.sleep(_LOOK_S)  # it has not begun to listen yet


def main() -> int:
    """Serves until the job is over; the process's exit code."""
    try:
        settings = Settings.from_environment(os.environ)
    except SettingError as error:
        print(f"mercury: {error}", file=sys.stderr)
        return 2
    from mxnet_plugins import figures
    from pslite_ext import _core

    signal.signal(signal.SIGTERM, _terminate)
    reason = "it was stopped"
    try:
        if settings.values["MERCURY_LAUNCHED"] and settings.values["DMLC_ROLE"] == "scheduler":
            threading.Thread(target=_hear_launcher, daemon=True, name="mercury-launcher").start()
        _core.start(settings.options())
        figures.serve(int(settings.values["MERCURY_METRICS_PORT"]))
        _core.serve()
        reason = ""
    except PsliteError as error:
        # The core has logged what happened to the job; a start that failed has told nobody yet.
        if not _core.failed():
            print(f"mercury: {error}", file=sys.stderr)
        return FAILED_ELSEWHERE if _core.failed_elsewhere() else 1
    except KeyboardInterrupt:
        reason = "it was interrupted"
        return 130
    finally:
        figures.say()
        _finish(reason)
    return 0
