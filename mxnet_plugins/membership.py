"""This worker process in its job: joins when the first store is made, leaves when Python ends."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import sys
import threading
from types import TracebackType

import mxnet as mx
from mxnet.base import MXNetError

from mxnet_plugins import errors, server_profile
from pslite_ext import _core, dump, prophet_profile
from pslite_ext.config import NO_REPLICA, Settings
from pslite_ext.errors import FAILED_ELSEWHERE, ClosedError, PsliteError, follows, told
from pslite_ext.job import figures, interrupt

_lock = threading.Lock()
_settings: Settings | None = None
_reason = ""
_error: BaseException | None = None  # that no one has caught


def join(asynchronous: bool = False) -> Settings:
    """Joins the job that the environment describes, once per process.

    `asynchronous`: so is the store that needs it; traces say so.
    """
    with _lock:
        try:
            return _join(asynchronous)
        except PsliteError as error:
            raise errors.as_mxnet(error) from None


def _join(asynchronous: bool) -> Settings:
    global _settings
    if _settings is not None:
        return _settings
    errors.install()
    server_profile.install()
    settings = Settings.from_environment(os.environ)
    if settings.values["DMLC_ROLE"] == "replica":
        raise ClosedError(NO_REPLICA)
    if settings.values["DMLC_ROLE"] != "worker":
        raise ClosedError(
            f"a {settings.values['DMLC_ROLE']} has no stores and should serve before MXNet is "
            "imported: install the MXNet wheel that was built with this mercury-ps"
        )
    _core.attach_engine(mx.base._LIB._handle)
    # First: whatever happens from here on, this process leaves as it should.
    _watch_end()
    dump.watch("worker", str(settings.values["MERCURY_TRACE_DIR"]))
    _core.start({**settings.options(), "asynchronous": int(asynchronous)})
    _settings = settings
    interrupt.watch()
    figures.serve(settings.values)
    return settings


@functools.cache
def _watch_end() -> None:
    """Once, even if a script tries to join again."""
    atexit.register(_leave)
    os.register_at_fork(after_in_child=_forked)
    _watch_exceptions()


def _forked() -> None:
    """A child is not in the job: it has none of the threads that leaving it takes."""
    atexit.unregister(_leave)


def _watch_exceptions() -> None:
    """Remembers an uncaught exception: the others are told why this worker ended."""
    earlier = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        global _reason, _error
        _reason, _error = errors.reason(kind.__name__, str(error)), error
        earlier(kind, error, trace)

    sys.excepthook = hook


def _failure() -> PsliteError | None:
    """What the job has failed of; None if it has not."""
    try:
        _core.check()
    except PsliteError as error:
        return error
    return None


def _keep_profile() -> None:
    """One file, one writer."""
    if _settings is not None and _core.rank() == 0:
        prophet_profile.write(_settings.prophet_profile, _core.prophet_profile())


def _unseen() -> str:
    """What pending operations fail of that the script was not raised; "" if there is no such error.

    MXNet knows what was read, but an array that is used again after its error was caught has that
    error once more. And MXNet raises one error and forgets the others: one of its own behind one of
    ours is lost.
    """
    seen = told()
    try:
        mx.nd.waitall()
    except PsliteError:
        pass  # one of ours, of which the core knows all
    except MXNetError as error:
        return errors.reason(type(error).__name__, str(error))
    unseen = (text for failure, text in _core.engine_failures() if failure.number not in seen)
    return next(unseen, "")


def _leave() -> None:
    """Python is about to end; what the exit code will be is known only when it has."""
    reason, follows_it = _reason, not _reason
    # Then the script has ended because of that, whatever exit code it chose.
    knew = _core.failed_elsewhere()
    if not reason:
        reason = _unseen()
    figures.say()
    _keep_profile()
    failure = _failure()
    if not reason and failure is None:
        return _core.finish_at_exit()
    if failure is not None:
        follows_it = follows_it or follows(_error, failure.failure)
    _core.finish(reason, _error)
    # What is pending has failed now. MXNet's own end would print it as a traceback.
    with contextlib.suppress(MXNetError):
        mx.nd.waitall()
    if not _reason:
        # The script has ended without looking at what failed: its exit code must tell.
        print(f"mercury: the job has failed: {failure or reason}", file=sys.stderr)
    if _core.failed_elsewhere() and follows_it:
        return _core.finish_at_exit(FAILED_ELSEWHERE, over_chosen=knew)
    return _core.finish_at_exit(1)
