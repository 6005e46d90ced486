"""This worker process in its job, under PyTorch: joins at the first wrap, leaves as Python ends."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable, Mapping
from types import TracebackType

from pslite_ext import _core
from pslite_ext.config import Settings
from pslite_ext.errors import FAILED_ELSEWHERE, ClosedError, PsliteError
from pslite_ext.torch import beside

_settings: Settings | None = None
_reason = ""
_at_end: list[Callable[[], None]] = []


def serve_if_asked() -> None:
    """In a server or scheduler, runs that and exits: it needs nothing of PyTorch."""
    if os.environ.get("DMLC_ROLE", "").strip() in ("server", "scheduler"):
        from mxnet_plugins import server

        sys.exit(server.main())


def join(meeting: beside.Meeting | None = None) -> int:
    """Joins the job, once per process; how many workers it has.

    The environment describes it, or, under torchrun, the workers start it when they meet.
    """
    global _settings
    if _settings is None:
        environ: Mapping[str, str] = os.environ
        if not environ.get("DMLC_ROLE", "").strip():
            environ = beside.start_job(environ, meeting or beside.meet(environ))
        settings = Settings.from_environment(environ)
        if settings.values["DMLC_ROLE"] != "worker":
            raise ClosedError(f"a {settings.values['DMLC_ROLE']} trains no model: it only serves")
        # First: whatever happens from here on, this process leaves as it should.
        atexit.register(_leave)
        os.register_at_fork(after_in_child=_forked)
        _watch_exceptions()
        _core.start(settings.options())
        _settings = settings
    return int(_settings.values["DMLC_NUM_WORKER"])


def say_if_forgotten() -> None:
    """At the end of a worker that has imported us: did it ever take part in its job?"""

    def say() -> None:
        role = os.environ.get("DMLC_ROLE", "").strip()
        started = role == "worker" or (not role and beside.is_under_torchrun(os.environ))
        if _settings is None and not _reason and started:
            print(
                "mercury: this worker trained alone: pslite_ext.torch was imported, but "
                "mercury.wrap(model, optimizer) was never called",
                file=sys.stderr,
            )

    atexit.register(say)


def at_end(finish: Callable[[], None]) -> None:
    """To be called before this worker leaves, if the script has ended well."""
    _at_end.append(finish)


def _forked() -> None:
    """A child, such as a loader of data, is not in the job."""
    atexit.unregister(_leave)
    beside.forked()


def _watch_exceptions() -> None:
    """Remembers an uncaught exception: the others are told why this worker ended."""
    earlier = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        global _reason
        first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
        _reason = f"{kind.__name__}: {first}" if first else kind.__name__
        earlier(kind, error, trace)

    sys.excepthook = hook


def _leave() -> None:
    """Python is about to end; what the exit code will be is known only when it has."""
    reason = _reason
    try:
        if not reason:
            for finish in _at_end:
                finish()
        _core.check()
    except PsliteError as error:
        if not reason:
            # The script has ended without looking at what failed: its exit code must tell.
            print(f"mercury: the job has failed: {error}", file=sys.stderr)
            reason = f"{type(error).__name__}: {error}"
    if not reason:
        return _core.finish_at_exit()
    elsewhere = _core.failed_elsewhere()
    _core.finish(reason)
    return _core.finish_at_exit(FAILED_ELSEWHERE if elsewhere else 1)
