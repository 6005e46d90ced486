"""This worker process in its job, under PyTorch: joins at the first wrap, leaves as Python ends."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from multiprocessing.util import Finalize
from types import TracebackType

from pslite_ext import _core, dump, prophet_profile
from pslite_ext.config import NO_REPLICA, Settings
from pslite_ext.errors import FAILED_ELSEWHERE, ClosedError, InvalidArgumentError, PsliteError
from pslite_ext.job import figures
from pslite_ext.torch import beside

_settings: Settings | None = None
_meeting: beside.Meeting | None = None  # kept: rank 0's process may hold the store for all
_reason = ""
_error: BaseException | None = None  # that no one has caught
_at_end: list[Callable[[], None]] = []


def serve_if_asked() -> None:
    """In a server or scheduler, runs that and exits: it needs nothing of PyTorch."""
    if os.environ.get("DMLC_ROLE", "").strip() in ("server", "scheduler"):
        from pslite_ext.job import serving

        sys.exit(serving.main())


def join(meeting: beside.Meeting | None = None) -> int:
    """Joins the job, once per process; how many workers it has.

    The environment describes it, or, under torchrun, the workers start it when they meet.
    """
    global _settings, _meeting
    if _settings is None:
        environ: Mapping[str, str] = os.environ
        if not environ.get("DMLC_ROLE", "").strip():
            if _meeting is not None:
                raise ClosedError("this process could not join its job: start a new process")
            _meeting = meeting or beside.meet(environ)
            environ = beside.start_job(environ, _meeting)
        settings = Settings.from_environment(environ)
        if settings.values["DMLC_ROLE"] == "replica":
            raise ClosedError(NO_REPLICA)
        if settings.values["MERCURY_FABRIC"]:
            raise InvalidArgumentError(
                "MERCURY_FABRIC is 1, and there is no MLfabric under PyTorch: unset it"
            )
        if settings.values["DMLC_ROLE"] != "worker":
            raise ClosedError(f"a {settings.values['DMLC_ROLE']} trains no model: it only serves")
        # First: whatever happens from here on, this process leaves as it should.
        if multiprocessing.parent_process() is None:
            atexit.register(_leave)
        else:  # it ends without atexit
            Finalize(None, _leave_spawned, exitpriority=0)
        os.register_at_fork(after_in_child=_forked)
        _watch_exceptions()
        dump.watch("worker", str(settings.values["MERCURY_TRACE_DIR"]))
        _core.start(settings.options(), beside.look)
        _settings = settings
        figures.serve(settings.values)
    return int(_settings.values["DMLC_NUM_WORKER"])


def say_if_forgotten() -> None:
    """At the end of a worker that has imported us, and ends well: did it ever join its job?"""
    if multiprocessing.parent_process() is not None:
        return  # it loads data for a worker
    process = os.getpid()

    def say() -> None:
        role = os.environ.get("DMLC_ROLE", "").strip()
        started = role == "worker" or (not role and beside.is_under_torchrun(os.environ))
        if _settings is None and started and os.getpid() == process:
            _core.say_at_exit(
                "mercury: this worker trained alone: pslite_ext.torch was imported, but "
                "mercury.wrap(model, optimizer) was never called"
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
        global _reason, _error
        _reason, _error = _first_line(error), error
        earlier(kind, error, trace)

    sys.excepthook = hook


def _first_line(error: BaseException) -> str:
    name = type(error).__name__
    first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"{name}: {first}" if first else name


def _leave_spawned() -> None:
    """This process's function is over; what it raised is still on its way."""
    error = sys.exc_info()[1]
    reason = ""
    if isinstance(error, SystemExit):
        reason = f"it ended with exit code {error.code}" if error.code else ""
    elif error is not None:
        reason = _first_line(error)
    failed, code = _finished(reason)
    _core.finish(failed, error)
    if failed and not reason:  # only now: nobody looks at what this function raises
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _leave() -> None:
    """Python is about to end; what the exit code will be is known only when it has."""
    reason, code = _finished(_reason)
    if not reason:
        return _core.finish_at_exit()
    _core.finish(reason, _error)
    return _core.finish_at_exit(code)


def _finished(reason: str) -> tuple[str, int]:
    """What is left is done, unless there is a reason not to; why this worker's part has failed,
    and the exit code for that."""
    code = FAILED_ELSEWHERE if _core.failed_elsewhere() else 1
    try:
        if not reason:
            for finish in _at_end:
                finish()
        _core.check()
    except BaseException as error:
        if not reason:
            # The script has ended without looking at what failed: its exit code must tell.
            reason, code = _first_line(error), 1
            if isinstance(error, PsliteError):
                code = FAILED_ELSEWHERE if _core.failed_elsewhere() else 1
            else:  # not the job's failure, but this worker's own
                traceback.print_exception(type(error), error, error.__traceback__)
            print(f"mercury: the job has failed: {error}", file=sys.stderr)
    figures.say()
    if _settings is not None and _core.rank() == 0:  # one file, one writer
        prophet_profile.write(_settings.prophet_profile, _core.prophet_profile())
    return reason, code
