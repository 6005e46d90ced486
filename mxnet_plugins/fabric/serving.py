"""What a process does whose DMLC_ROLE is server, replica or scheduler of an MLfabric job.

It runs inside `import mxnet` and ends the process. The model's size and first values come from the
workers.
"""

from __future__ import annotations

import sys

from mxnet_plugins.fabric import job
from pslite_ext import fabric
from pslite_ext.job.serving import end_when_told
from pslite_ext.setting import SettingError


def main() -> int:
    """Serves until the job is over; the process's exit code."""
    end_when_told()
    try:
        job.settings()
        fabric.register(None)  # ends the process
    except SettingError as error:
        print(f"mercury: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0
