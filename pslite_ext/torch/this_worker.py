"""This worker process in its job, under PyTorch: joins at the first wrap, or with the backend.

Under MLfabric `mercury.fabric` joins another kind of job (mlfabric/wrapping.py), and says so here.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import sys
import traceback
from collections.abc import Callable, Mapping

from pslite_ext import _core
from pslite_ext.config import SettingError, Settings, under_fabric
from pslite_ext.errors import ClosedError, InvalidArgumentError, PsliteError
from pslite_ext.job import joining, leaving
from pslite_ext.job.reason import why
from pslite_ext.torch import beside

_meeting: beside.Meeting | None = None  # kept: rank 0's process may hold the store for all
_at_end: list[Callable[[], None]] = []
_fabric: tuple[int, int] | None = None  # under MLfabric: the rank, and how many workers there are
_shares = False  # anything with the other workers
_steps = False  # an optimizer has made one, in a worker that has a process group


def serve_if_asked() -> None:
    """In a server, replica or scheduler, runs that and exits: it needs nothing of PyTorch."""
    role = os.environ.get("DMLC_ROLE", "").strip()
    if role in ("server", "replica", "scheduler") and _is_under_fabric():
        from pslite_ext.torch.mlfabric import job

        sys.exit(job.serve(os.environ))
    if role in ("server", "scheduler"):
        from pslite_ext.job import serving

        sys.exit(serving.main())


def _is_under_fabric() -> bool:
    try:
        return under_fabric(os.environ)
    except SettingError as error:
        print(f"mercury: {error}", file=sys.stderr)
        sys.exit(2)


def join(meeting: beside.Meeting | None = None) -> int:
    """Joins the job, once per process; how many workers it has.

    The environment describes it, or, under torchrun, the workers start it when they meet.
    `meeting`: of a process group, with which nothing is shared yet.
    """
    global _meeting
    if meeting is None:
        shares()
    if (settings := joining.joined) is None:
        environ: Mapping[str, str] = os.environ
        if not environ.get("DMLC_ROLE", "").strip():
            if _meeting is not None:
                raise ClosedError("this process could not join its job: start a new process")
            _meeting = meeting or beside.meet(environ)
            environ = beside.start_job(environ, _meeting)
        settings = joining.settings_of_worker(environ, "trains no model: it only serves")
        if settings.values["MERCURY_FABRIC"]:
            raise InvalidArgumentError(
                "MERCURY_FABRIC is 1, which is for mercury.fabric(model, optimizer): call it in "
                "the place of what else joins a job (mercury.wrap, a process group), or unset "
                "MERCURY_FABRIC"
            )
        os.register_at_fork(after_in_child=beside.forked)
        joining.join(settings, _LEAVING, look=beside.look)
    return int(settings.values["DMLC_NUM_WORKER"])


def refuse_under_fabric(text: str) -> None:
    if under_fabric(os.environ):
        raise InvalidArgumentError(text)


def settings_under_fabric() -> Settings:
    """Of a worker whose script asks for MLfabric."""
    from pslite_ext.torch.mlfabric import job

    return job.settings_of_worker(os.environ)


def has_joined_fabric(rank: int, workers: int) -> None:
    global _fabric
    _fabric = rank, workers


def rank() -> int:
    return _core.rank() if _fabric is None else _fabric[0]


def workers() -> int:
    return _core.workers() if _fabric is None else _fabric[1]


def shares() -> None:
    """It begins something that others take part in."""
    global _shares
    _shares = True


def steps() -> None:
    """It trains, and has a process group."""
    global _steps
    _steps = True


def say_if_forgotten() -> None:
    """At the end of a worker that has imported us, and ends well: did it train alone?"""
    if multiprocessing.parent_process() is not None:
        return  # it loads data for a worker
    process = os.getpid()

    def say() -> None:
        role = os.environ.get("DMLC_ROLE", "").strip()
        started = role == "worker" or (not role and beside.is_under_torchrun(os.environ))
        joined = joining.joined is not None or _fabric is not None
        why = ""
        if not joined:  # whether it has trained with others in another way, nobody here knows
            why = (
                "nothing went through mercury-ps: pslite_ext.torch was imported, but "
                "mercury.wrap(model, optimizer) was never called, nor what else joins the job"
            )
        elif _steps and not _shares:
            why = (
                "this worker trained alone: there is a process group, but nothing was ever sent "
                "through it: call mercury.wrap(model, optimizer), or put the model into "
                "DistributedDataParallel"
            )
        if started and why and os.getpid() == process:
            _core.say_at_exit(f"mercury: {why}")

    atexit.register(say)


def at_end(finish: Callable[[], None]) -> None:
    """To be called before this worker leaves, if the script has ended well."""
    _at_end.append(finish)


def _last() -> leaving.Unseen | None:
    try:
        for finish in _at_end:
            finish()
        _core.check()
    except BaseException as error:
        own = not isinstance(error, PsliteError)
        if own:
            traceback.print_exception(type(error), error, error.__traceback__)
        return leaving.Unseen(why(error), str(error), own)
    return None


_LEAVING = leaving.Leaving(_last, rewords=True, spawned=True)
