"""What a process does whose DMLC_ROLE is server, replica or scheduler, where a framework trains.

It runs inside that framework's import, and ends the process. The model's size and first values come
from the workers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from pslite_ext.fabric.nodes import register
from pslite_ext.job.serving import end_when_told
from pslite_ext.setting import SettingError


def main(check: Callable[[], object]) -> int:
    """Serves until the job is over; the process's exit code. `check` raises for settings that the
    framework's jobs do not have."""
    end_when_told()
    try:
        check()
        register(None)  # ends the process
    except SettingError as error:
        print(f"mercury: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0
