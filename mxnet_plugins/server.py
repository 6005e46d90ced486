"""What a process whose DMLC_ROLE is server or scheduler does, instead of the user's script.

It runs inside `import mxnet` and ends the process, as upstream's does. Nothing here unpickles
anything and no user code runs: a server only sums.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

from pslite_ext.config import SettingError, Settings
from pslite_ext.errors import PsliteError


def _terminate(number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + number)


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
        _core.start(settings.options())
        figures.serve(int(settings.values["MERCURY_METRICS_PORT"]))
        _core.serve()
        reason = ""
    except PsliteError as error:
        # The core has logged what happened to the job; a start that failed has told nobody yet.
        if not _core.failed():
            print(f"mercury: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        reason = "it was interrupted"
        return 130
    finally:
        figures.say()
        _core.finish(reason)
    return 0
