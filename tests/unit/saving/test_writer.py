"""One at a time, and what fails costs no more than itself."""

from __future__ import annotations

import threading

import pytest

from pslite_ext.saving.writer import Writer


def test_the_next_waits_for_the_one_before(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, may_end = Writer(), threading.Event()
    order: list[str] = []

    def first() -> None:
        may_end.wait(30)
        order.append("first")

    writer.write(100, first)
    assert order == []  # training goes on
    say_slow = writer._say_slow

    def waits(step: int) -> None:
        say_slow(step)
        may_end.set()

    monkeypatch.setattr(writer, "_say_slow", waits)
    writer.write(200, lambda: order.append("second"))
    assert order[0] == "first"
    writer.wait()
    writer.wait()
    assert order == ["first", "second"]
    said = capsys.readouterr().err
    assert "the checkpoint of step 200 is due, and the one before is still being written" in said


def test_what_cannot_be_written_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    writer = Writer()

    def fails() -> None:
        raise OSError(28, "No space left on device")

    writer.write(100, fails)
    writer.wait()
    assert capsys.readouterr().err == (
        "mercury: the checkpoint of step 100 was not written: [Errno 28] No space left on device; "
        "training goes on\n"
    )
    done: list[int] = []
    writer.write(200, lambda: done.append(200))
    writer.wait()
    assert done == [200]
