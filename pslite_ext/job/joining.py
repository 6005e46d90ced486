"""How a worker's process joins its job, whatever it trains with."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pslite_ext import _core, dump
from pslite_ext.config import NO_REPLICA, NO_REPLICAS, Settings
from pslite_ext.errors import ClosedError
from pslite_ext.job import figures
from pslite_ext.job.leaving import Leaving

joined: Settings | None = None  # this process's, once it is in its job


def settings_of_worker(environ: Mapping[str, str], others: str) -> Settings:
    """`others`: what is wrong with a process here that has another role."""
    settings = Settings.from_environment(environ)
    role = settings.values["DMLC_ROLE"]
    if role == "replica":
        raise ClosedError(NO_REPLICA)
    if role != "worker":
        raise ClosedError(f"a {role} {others}")
    if settings.values["DMLC_NUM_REPLICA"] and not settings.values["MERCURY_FABRIC"]:
        raise ClosedError(NO_REPLICAS)
    return settings


def join(
    settings: Settings,
    leaving: Leaving,
    more: Mapping[str, int] | None = None,
    look: Callable[[], None] | None = None,
) -> None:
    """Returns when all are there. `more`, `look`: for the core's start."""
    global joined
    leaving.watch()
    dump.watch("worker", str(settings.values["MERCURY_TRACE_DIR"]))
    _core.start({**settings.options(), **(more or {})}, look)
    leaving.profile = settings.prophet_profile
    joined = settings
    figures.serve(settings.values)
