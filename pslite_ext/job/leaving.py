"""How a worker leaves its job: as its process ends, by whatever, and with which exit code.

A forked child is not in the job: it has none of the threads that leaving it takes.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType, TracebackType
from typing import NamedTuple

from pslite_ext import _core, prophet_profile
from pslite_ext.errors import FAILED_ELSEWHERE, PsliteError, follows
from pslite_ext.job import figures, spawned
from pslite_ext.job.reason import why

_uncaught: BaseException | None = None


def at_exit(call: Callable[[], None]) -> None:
    """As Python ends, in this process alone."""
    atexit.register(call)
    os.register_at_fork(after_in_child=lambda: atexit.unregister(call))


def end_on_sigterm() -> None:
    """As processes do by default, but for the first one of a container, which the kernel spares."""
    if os.getpid() != 1 or threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _end)
        os.register_at_fork(after_in_child=_end_by_default)


def _end(number: int, _frame: FrameType | None) -> None:
    os._exit(128 + number)


def _end_by_default() -> None:
    if signal.getsignal(signal.SIGTERM) is _end:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@functools.cache
def remember_uncaught() -> None:
    """The others are told why this worker ended."""
    earlier = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        global _uncaught
        _uncaught = error
        earlier(kind, error, trace)

    sys.excepthook = hook


def uncaught() -> BaseException | None:
    """What has ended the script, if it did not end by itself."""
    return _uncaught


def failure() -> PsliteError | None:
    """What the job has failed of; None if it has not."""
    try:
        _core.check()
    except PsliteError as error:
        return error
    return None


def exit_code(elsewhere: bool, follows_it: bool = True) -> int:
    """Of a process that fails. `elsewhere`: the job has failed for what another node did;
    `follows_it`: that is why."""
    return FAILED_ELSEWHERE if elsewhere and follows_it else 1


def end_with(code: int, knew: bool) -> None:
    """`knew`: of another's failure, before the end: that is why the script has ended, whatever exit
    code it chose."""
    _core.finish_at_exit(code, over_chosen=knew and code == FAILED_ELSEWHERE)


class Unseen(NamedTuple):
    """What has failed, and the script has ended without looking at it: its exit code must tell."""

    reason: str  # for the others; "": they know
    text: str  # for this process's log
    own: bool = False  # not the job's failure, but this worker's


@dataclass
class Leaving:
    """A worker's, of one front. `last` does what is left, if the script has ended well."""

    last: Callable[[], Unseen | None]
    after: Callable[[], None] = lambda: None  # what is pending has failed now
    rewords: bool = False  # the framework raises errors of its own in place of ours
    spawned: bool = False  # multiprocessing may have started it: it leaves as its function ends
    profile: str = ""  # the file for what Prophet learns, once the job has begun
    _watches: bool = field(default=False, init=False)

    def watch(self) -> None:
        """Whatever happens from here on, this process leaves as it should."""
        if self._watches:
            return
        self._watches = True
        remember_uncaught()
        end_on_sigterm()
        if self.spawned and not spawned.ends_as_others_do():
            spawned.at_end(self._leave_spawned, why)
        else:
            at_exit(self._leave)

    def _leave(self) -> None:
        """Python is about to end; what the exit code will be is known only when it has."""
        # Where errors are reworded, an exit code that the script chose is not taken back.
        knew = not self.rewords and _core.failed_elsewhere()
        reason = "" if _uncaught is None else why(_uncaught)
        end_with(self._finish(reason, _uncaught), knew)

    def _leave_spawned(self, reason: str, error: BaseException | None) -> None:
        """This process's function is over."""
        code = self._finish(reason, error)
        if code == 0:
            _core.finish()
        elif not reason:  # only now: nobody looks at what this function raises
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def _finish(self, reason: str, error: BaseException | None) -> int:
        """The exit code; if that is 0, this worker is still in the job."""
        try:
            return self._finish_as_it_ended(reason, error)
        except BaseException as another:  # the others must hear of it, Ctrl-C or whatever it is
            _core.finish(why(another), another)
            sys.excepthook(type(another), another, another.__traceback__)
            return 1

    def _finish_as_it_ended(self, reason: str, error: BaseException | None) -> int:
        unseen = None if reason else self.last()
        figures.say()
        if self.profile and _core.rank() == 0:  # one file, one writer
            prophet_profile.write(self.profile, _core.prophet_profile())
        if unseen is not None:
            reason, follows_it = unseen.reason, not unseen.own
        elif reason:
            job = failure()
            follows_it = self.rewords or (job is not None and follows(error, job.failure))
        else:
            return 0
        _core.finish(reason, error)
        self.after()
        if unseen is not None:
            with contextlib.suppress(OSError, ValueError):
                print(f"mercury: the job has failed: {unseen.text}", file=sys.stderr)
        return exit_code(_core.failed_elsewhere(), follows_it)
