"""This worker process in its job, under MXNet: joins when the first store is made."""

from __future__ import annotations

import contextlib
import os
import threading

import mxnet as mx
from mxnet.base import MXNetError

from mxnet_plugins import errors, server_profile, trainers
from mxnet_plugins.base_store import NO_STORES
from pslite_ext import _core
from pslite_ext.config import Settings, under_fabric
from pslite_ext.errors import PsliteError, told
from pslite_ext.job import interrupt, joining, leaving
from pslite_ext.job.reason import why

_lock = threading.Lock()


def join(asynchronous: bool = False) -> Settings:
    """Joins the job that the environment describes, once per process.

    `asynchronous`: so is the store that needs it; traces say so.
    """
    with _lock:
        try:
            return joining.joined or _join(asynchronous)
        except PsliteError as error:
            raise errors.as_mxnet(error) from None


def is_under_fabric() -> bool:
    """Then its store joins another kind of job."""
    return under_fabric(os.environ)


def _join(asynchronous: bool) -> Settings:
    errors.install()
    server_profile.install()
    trainers.install()
    settings = joining.settings_of_worker(os.environ, NO_STORES)
    _core.attach_engine(mx.base._LIB._handle)
    joining.join(settings, _LEAVING, {"asynchronous": int(asynchronous)})
    interrupt.watch()
    return settings


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
        return why(error)
    unseen = (text for failure, text in _core.engine_failures() if failure.number not in seen)
    return next(unseen, "")


def _last() -> leaving.Unseen | None:
    reason, failure = _unseen(), leaving.failure()
    return leaving.Unseen(reason, str(failure or reason)) if reason or failure else None


def _fail_pending() -> None:
    """MXNet's own end would print it as a traceback."""
    with contextlib.suppress(MXNetError):
        mx.nd.waitall()


_LEAVING = leaving.Leaving(_last, _fail_pending)
