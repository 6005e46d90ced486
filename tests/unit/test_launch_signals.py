"""mercury launch and whatever else ends when it is told to, or killed."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import cast

import pytest

from pslite_ext.launch import command
from pslite_ext.launch.watch import JobWatch
from tests.cluster import wait_gone
from tests.launching import LIMIT_S, launch, python


def test_who_is_told_to_end_as_a_job_fails_does_not_start_it_again() -> None:
    class Watch:
        def start(self, _tasks: object) -> None:
            pass

        def wait(self) -> int:
            return 7

        def end_all(self) -> None:
            os.kill(os.getpid(), signal.SIGTERM)

        def close(self) -> None:
            pass

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    told = threading.Event()
    try:
        assert command._run_once([], cast(JobWatch, Watch()), told) == 7
        assert told.is_set()
        told.clear()
        os.kill(os.getpid(), signal.SIGTERM)  # before the next one begins
        assert told.is_set()
    finally:
        for number, handler in zip(numbers, before):
            signal.signal(number, handler)


def test_two_signals_at_once_end_the_job() -> None:
    done: list[str] = []

    class Watch:
        def start(self, _tasks: object) -> None:
            pass

        def wait(self) -> int:
            both = {signal.SIGINT, signal.SIGTERM}
            signal.pthread_sigmask(signal.SIG_BLOCK, both)
            for number in both:
                signal.pthread_kill(threading.get_ident(), number)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, both)
            return 0

        def hush(self) -> None:
            pass

        def end_all(self) -> None:
            done.append("ended")

        def say_ended(self, why: str) -> None:
            done.append(why)

        def close(self) -> None:
            pass

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    try:
        with pytest.raises(SystemExit) as raised:
            command._run_once([], cast(JobWatch, Watch()), threading.Event())
    finally:
        for number, handler in zip(numbers, before):
            signal.signal(number, handler)
    assert (raised.value.code, done) == (130, ["ended", "interrupted"])


def test_a_terminal_that_closes_is_nothing_under_nohup(tmp_path: Path) -> None:
    code = "print('up')\nimport time\ntime.sleep(0.5)\n"
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        job = launch(tmp_path, "-n", "1", *python(code))
    finally:
        signal.signal(signal.SIGHUP, before)
    assert job.stdout is not None
    assert "up" in job.stdout.readline()
    job.send_signal(signal.SIGHUP)
    _, err = job.communicate(timeout=LIMIT_S)
    assert job.returncode == 0, err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_nothing_is_left(tmp_path: Path, number: int) -> None:
    marker = f"marker{os.getpid()}{int(number)}"
    code = (
        "signal.signal(signal.SIGTERM, lambda *_: print('ending', flush=True))\n"
        f"subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)', '{marker}'])\n"
        "print('up')\nwhile True: time.sleep(600)\n"
    )
    job = launch(tmp_path, "-n", "1", *python(code), marker)
    assert job.stdout is not None
    for _ in range(3):
        assert "up" in job.stdout.readline()
    job.send_signal(number)
    out, err = job.communicate(timeout=LIMIT_S)
    assert job.returncode == 128 + number
    why = "interrupted" if number == signal.SIGINT else "stopped by signal 15"
    logs = tmp_path / "logs"
    assert err == f"mercury launch: {why}; everything has ended; all logs are in {logs}\n"
    assert out == "", "what processes say while they are ended is in their logs"
    assert "ending" in (logs / "worker_0.log").read_text()
    wait_gone(marker)


def test_killed_nothing_is_left(tmp_path: Path) -> None:
    """Even SIGKILL, and even of what a script has started that did not become it."""
    marker = f"orphan{os.getpid()}"
    code = "import time; print('up', flush=True); time.sleep(600)"
    script = f'{sys.executable} -c "{code}" {marker}; true'
    job = launch(tmp_path, "-n", "1", "--", "bash", "-c", script)
    assert job.stdout is not None
    for _ in range(3):
        assert "up" in job.stdout.readline()
    job.kill()
    job.communicate()
    wait_gone(marker)
