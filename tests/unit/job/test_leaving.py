"""How a worker leaves its job, and the exit code that tells why."""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
from typing import NamedTuple

import pytest

from pslite_ext import _core
from pslite_ext.errors import FAILED_ELSEWHERE, Failure, PsliteError, from_status
from pslite_ext.job import figures, leaving
from pslite_ext.job.leaving import Leaving, Unseen

LOST = from_status(Failure(3, number=7), "lost worker 1")
MISTAKE = ValueError("a mistake\nof the script")
FOLLOWS = RuntimeError("no sum")
FOLLOWS.__cause__ = LOST


class Left(NamedTuple):
    code: int
    over_chosen: bool
    reason: str | None = None  # that the others are told; None: it is in the job until it ends


def leave(
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException | None,
    unseen: Unseen | None,
    failed: PsliteError | None,
    rewords: bool,
) -> Left:
    """`failed`: of what another node did."""
    reasons: list[str] = []
    ended: list[tuple[int, bool]] = []

    def check() -> None:
        if failed is not None:
            raise failed

    monkeypatch.setattr(leaving, "_uncaught", error)
    monkeypatch.setattr(_core, "check", check)
    monkeypatch.setattr(_core, "failed_elsewhere", lambda: failed is not None)
    monkeypatch.setattr(_core, "finish", lambda reason, _: reasons.append(reason))
    monkeypatch.setattr(
        _core, "finish_at_exit", lambda code, over_chosen: ended.append((code, over_chosen))
    )
    Leaving(lambda: unseen, rewords=rewords)._leave()
    return Left(*ended[0], *reasons)


@pytest.mark.parametrize(
    ("error", "unseen", "failed", "left"),
    [
        (None, None, None, Left(0, False)),
        (MISTAKE, None, None, Left(1, False, "ValueError: a mistake")),
        (MISTAKE, None, LOST, Left(1, False, "ValueError: a mistake")),
        (FOLLOWS, None, LOST, Left(FAILED_ELSEWHERE, True, "RuntimeError: no sum")),
        (None, Unseen("", "lost worker 1"), LOST, Left(FAILED_ELSEWHERE, True, "")),
        (None, Unseen("no room", "no room"), None, Left(1, False, "no room")),
        (None, Unseen("no room", "no room", own=True), LOST, Left(1, False, "no room")),
    ],
)
def test_the_exit_code_tells_whom_to_look_at(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: BaseException | None,
    unseen: Unseen | None,
    failed: PsliteError | None,
    left: Left,
) -> None:
    assert leave(monkeypatch, error, unseen, failed, rewords=False) == left
    said = "" if unseen is None else f"mercury: the job has failed: {unseen.text}\n"
    assert capsys.readouterr().err == said


def test_an_error_in_other_words_may_follow_any_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    assert leave(monkeypatch, MISTAKE, None, LOST, rewords=True).code == FAILED_ELSEWHERE
    assert leave(monkeypatch, MISTAKE, None, None, rewords=True).code == 1


def test_what_ends_a_script_is_remembered_and_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[BaseException] = []
    monkeypatch.setattr(sys, "excepthook", lambda _kind, error, _trace: shown.append(error))
    monkeypatch.setattr(leaving, "_uncaught", None)
    leaving.remember_uncaught.__wrapped__()
    sys.excepthook(ValueError, MISTAKE, None)
    assert leaving.uncaught() is MISTAKE
    assert shown == [MISTAKE]


def test_whatever_goes_wrong_as_it_leaves_the_others_hear_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys, "excepthook", lambda *_: None)
    monkeypatch.setattr(figures, "say", interrupted)
    assert leave(monkeypatch, None, None, None, rewords=False) == Left(
        1, False, "KeyboardInterrupt"
    )


def test_so_they_do_of_one_that_was_spawned(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    reasons: list[str] = []
    codes: list[int] = []
    monkeypatch.setattr(sys, "excepthook", lambda *_: None)
    monkeypatch.setattr(figures, "say", interrupted)
    monkeypatch.setattr(_core, "finish", lambda reason, _: reasons.append(reason))
    monkeypatch.setattr(os, "_exit", codes.append)
    Leaving(lambda: None)._leave_spawned("", None)
    assert (reasons, codes) == (["KeyboardInterrupt"], [1])


def test_a_last_word_that_nobody_can_read_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.StringIO):
        def write(self, _: str) -> int:
            raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(figures, "summary", lambda _: "worker 0: 3 MB sent")
    monkeypatch.setattr(sys, "stderr", Full())
    assert leave(monkeypatch, None, None, None, rewords=False) == Left(0, False)


def test_a_container_s_first_process_ends_on_sigterm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which the kernel keeps from it otherwise."""
    codes: list[int] = []
    monkeypatch.setattr(leaving, "at_exit", lambda _: None)
    monkeypatch.setattr(os, "register_at_fork", lambda **_: None)
    monkeypatch.setattr(os, "_exit", codes.append)
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        Leaving(lambda: None).watch()
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL, "others need no handler"
        monkeypatch.setattr(os, "getpid", lambda: 1)
        Leaving(lambda: None).watch()
        signal.raise_signal(signal.SIGTERM)
        assert codes == [128 + signal.SIGTERM]
        leaving._end_by_default()
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        Leaving(lambda: None).watch()
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN, "a script decides for itself"
    finally:
        signal.signal(signal.SIGTERM, before)
