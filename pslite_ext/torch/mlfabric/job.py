"""What this process of an MLfabric job is told, under PyTorch."""

from __future__ import annotations

from collections.abc import Mapping

from pslite_ext.config import Settings, under_fabric
from pslite_ext.errors import InvalidArgumentError
from pslite_ext.fabric import serving
from pslite_ext.fabric.options import refuse_update_rule
from pslite_ext.job import joining


def serve(environ: Mapping[str, str]) -> int:
    """In a server, its replica or the scheduler; the process's exit code."""
    return serving.main(lambda: _checked(Settings.from_environment(environ)))


def settings_of_worker(environ: Mapping[str, str]) -> Settings:
    if not (environ.get("DMLC_ROLE", "").strip() and under_fabric(environ)):
        raise InvalidArgumentError(
            "mercury.fabric needs a job under MLfabric, which torchrun does not start: use "
            "mercury launch -n N -s 1 --env MERCURY_FABRIC=1 -- python SCRIPT"
        )
    return _checked(joining.settings_of_worker(environ, "trains no model: it only serves"))


def _checked(settings: Settings) -> Settings:
    refuse_update_rule(settings, "PyTorch")
    return settings
