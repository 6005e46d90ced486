"""What this process of an MLfabric job is told, under MXNet."""

from __future__ import annotations

import os

from pslite_ext.config import Settings
from pslite_ext.fabric.options import refuse_update_rule


def settings() -> Settings:
    found = Settings.from_environment(os.environ)
    refuse_update_rule(found)
    return found
