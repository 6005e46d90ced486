"""What this process of an MLfabric job is told, under MXNet."""

from __future__ import annotations

import os

from pslite_ext.config import Settings
from pslite_ext.fabric import serving
from pslite_ext.fabric.options import refuse_synchrony, refuse_update_rule
from pslite_ext.fabric_words import staleness
from pslite_ext.setting import SettingError


def settings() -> Settings:
    found = Settings.from_environment(os.environ)
    refuse_update_rule(found, "MXNet")
    refuse_synchrony(found)
    return found


def serve() -> int:
    """In a server, its replica or the scheduler, inside `import mxnet`; the process's exit code."""
    return serving.main(settings)


def refuse_staleness(settings: Settings, name: str) -> None:
    mode = str(settings.values["MERCURY_FABRIC_MODE"])
    if staleness(mode) >= 0:
        raise SettingError(
            f"MERCURY_FABRIC_MODE is '{mode}', and the script asks for '{name}', where no worker "
            "is ahead: ask for 'dist_async', or unset MERCURY_FABRIC_MODE"
        )
