"""What looks like a setting in the environment, and is none."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from pslite_ext.setting import SettingError
from pslite_ext.settings_table import TABLE

PREFIX = "MERCURY_"
# What begins like a setting, and is for our tests and the lab.
NOT_SETTINGS = frozenset(
    {"MERCURY_STOCK_PYTHON", "MERCURY_TEST_LONG", "MERCURY_TEST_SEED", "MERCURY_TORCH_PYTHON"}
)


def check_names(environ: Mapping[str, str]) -> None:
    """Refuses what looks like a setting of ours and is none: it would have no effect, silently."""
    ours = [s.name.removeprefix(PREFIX) for s in TABLE if s.name.startswith(PREFIX)]
    for name in sorted(set(environ) - NOT_SETTINGS):
        rest = name.removeprefix(PREFIX)
        if rest == name or rest in ours or _is_of_a_service(name, environ):
            continue
        meant = difflib.get_close_matches(rest, ours, n=1)
        advice = f"did you mean {PREFIX}{meant[0]}?" if meant else "`mercury settings` lists all"
        raise SettingError(f"{name} is not a setting of mercury-ps: {advice}")


def _is_of_a_service(name: str, environ: Mapping[str, str]) -> bool:
    """Kubernetes tells every pod of every service, one named mercury-... too: MERCURY_..._PORT."""
    parts = name.split("_")
    services = ("_".join(parts[:n]) for n in range(1, len(parts)))
    return any(
        f"{service}_SERVICE_HOST" in environ
        and name.startswith((f"{service}_SERVICE_", f"{service}_PORT"))
        for service in services
    )
