"""How a launched job ends: in time, with the process named that failed first."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pslite_ext.errors import FAILED_ELSEWHERE
from tests.cluster import ROOT, TRAINING, clean_environment, wait_gone

LIMIT_S = 120
NODE = [str(ROOT / "tests" / "faults" / "node.py")]
both_vans = pytest.mark.parametrize("van", ["zmq", "mercury"])


@contextmanager
def launched(folder: Path, *words: str, **env: str) -> Iterator[subprocess.Popen[str]]:
    """`mercury launch` of two workers and a server."""
    counts = ("-n", "2", "-s", "1", "--log-dir", str(folder / "logs"))
    job = subprocess.Popen(
        [sys.executable, "-m", "tracer", "launch", *counts, *words],
        cwd=ROOT,
        env=clean_environment(OMP_NUM_THREADS="1", PYTHONPATH=str(ROOT), **env),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield job
    finally:
        job.terminate()
        job.communicate(timeout=LIMIT_S)


def output(job: subprocess.Popen[str]) -> str:
    return job.communicate(timeout=LIMIT_S)[0]


def await_line(job: subprocess.Popen[str], *texts: str) -> str:
    """The first that has them all."""
    assert job.stdout is not None
    for line in job.stdout:
        if all(text in line for text in texts):
            return line
    raise AssertionError(f"nobody said {texts}")


def process_that_says(job: subprocess.Popen[str], text: str) -> int:
    return int(await_line(job, text).split()[-1])


@pytest.mark.drawn(1)
@both_vans
def test_an_exit_code_is_the_job_s(tmp_path: Path, van: str) -> None:
    """The others cannot go on, and end with errors: they are not named."""
    env = {"STOP_RANK": "1", "STOP_CODE": "3"}
    with launched(tmp_path, "--van", van, "--", sys.executable, *TRAINING, **env) as job:
        out = output(job)
    assert job.returncode == 3, out
    assert "mercury launch: worker 1 failed first: it ended with exit code 3" in out
    # Its own goodbye, or the launcher's word for it: whichever is first.
    log = (tmp_path / "logs/server_0.log").read_text()
    assert re.search("worker 1 ended(: it ended)? with exit code 3", log), log


@pytest.mark.drawn(2)
@pytest.mark.parametrize("turn", range(2))
@both_vans
def test_an_exception_is_the_user_s_alone(tmp_path: Path, van: str, turn: int) -> None:
    with launched(tmp_path, "--van", van, "--", sys.executable, *TRAINING, FAIL_RANK="1") as job:
        out = output(job)
    assert job.returncode == 1, out
    assert "mercury launch: worker 1 failed first: it ended with exit code 1" in out
    log = (tmp_path / "logs/worker_1.log").read_text()
    assert log.count("Traceback") == 1, log
    after = log.partition("ValueError: a mistake in the script\n")[2]
    assert "Error in atexit" not in after


def test_who_fails_for_another_says_so_by_its_exit_code(tmp_path: Path) -> None:
    code = (
        "import os, sys, time\n"
        "worker = os.environ['DMLC_ROLE'] == 'worker'\n"
        "culprit = worker and os.environ['DMLC_TASK_ID'] == '1'\n"
        f"if not culprit: sys.exit({FAILED_ELSEWHERE})\n"
        "time.sleep(1)\n"
        "sys.exit(7)\n"
    )
    with launched(tmp_path, "--", sys.executable, "-c", code) as job:
        out = output(job)
    assert job.returncode == 7, out
    assert "mercury launch: worker 1 failed first: it ended with exit code 7" in out


def test_a_code_chosen_after_another_s_failure_is_not_the_job_s(tmp_path: Path) -> None:
    """Worker 0 ends sooner than worker 1, of whose failure it heard."""
    code = (
        "import atexit, os, sys, time\n"
        "def wait_for_the_other():\n"
        "    other = '/proc/' + open(os.environ['PID_FILE']).read()\n"
        "    while os.path.exists(other): time.sleep(0.05)\n"
        "fails = os.environ.get('DMLC_TASK_ID') == '1'\n"
        "if fails: atexit.register(wait_for_the_other)\n"  # when it has told everybody
        "import mxnet as mx\n"
        "if not fails: open(os.environ['PID_FILE'], 'w').write(str(os.getpid()))\n"
        "try:\n"
        "    kv, x = mx.kv.create('dist_sync'), mx.nd.ones((5,))\n"
        "    if fails: raise ValueError('a mistake in the script')\n"
        "    kv.init('w', x)\n"
        "    kv.pushpull('w', x)\n"
        "    x.wait_to_read()\n"
        "except mx.MXNetError:\n"
        "    print('chooses 4')\n"
        "    sys.exit(4)\n"
    )
    env = {"PID_FILE": str(tmp_path / "pid")}
    with launched(tmp_path, "--", sys.executable, "-c", code, **env) as job:
        out = output(job)
    assert "[worker 0] chooses 4" in out, out
    assert "mercury launch: worker 1 failed first: it ended with exit code 1" in out
    assert job.returncode == 1, out


@pytest.mark.parametrize(("victim", "says"), [(1, "stays out"), (0, "joins")])
def test_killed_while_others_gather(tmp_path: Path, victim: int, says: str) -> None:
    """Before it has joined, and after: who waits for it hears of it, long before the time-out."""
    env = {"STAYS_OUT": "1", "MERCURY_START_TIMEOUT_S": "600"}
    with launched(tmp_path, "--", sys.executable, *NODE, **env) as job:
        culprit = process_that_says(job, says)
        await_line(job, "waiting for 1 of 2 workers", "server at", "worker at")
        os.kill(culprit, signal.SIGKILL)
        out = output(job)
    assert job.returncode == 128 + signal.SIGKILL, out
    assert f"mercury launch: worker {victim} failed first: it was killed by signal 9" in out
    log = (tmp_path / "logs" / "server_0.log").read_text()
    assert f"worker {victim} was killed by signal 9" in log, out


@pytest.mark.drawn(1)
@pytest.mark.parametrize("ends", ["worker 1", "server 0", "worker"])
def test_who_ends_before_it_has_joined_is_not_waited_for(tmp_path: Path, ends: str) -> None:
    env = {"ENDS_FIRST": ends, "HAS_STORE": "0 1", "MERCURY_START_TIMEOUT_S": "600"}
    with launched(tmp_path, "--", sys.executable, *NODE, **env) as job:
        out = output(job)
    assert job.returncode == 1, out
    early = re.search(r"error: (\S+ \d) ended with exit code 0 before the job had begun", out)
    assert early is not None, out
    assert early[1].startswith(ends)
    assert f"mercury launch: {early[1]} ended with exit code 0 before the job was over" in out


def test_who_comes_when_the_start_has_failed_is_told(tmp_path: Path) -> None:
    """Long after another was killed, and long before anybody's patience ends."""
    env = {"STAYS_OUT": "0", "GO": str(tmp_path / "go"), "MERCURY_START_TIMEOUT_S": "600"}
    with launched(tmp_path, "--grace", "600", "--", sys.executable, *NODE, **env) as job:
        os.kill(process_that_says(job, "joins"), signal.SIGKILL)
        await_line(job, "[scheduler]", "error: worker 1 was killed by signal 9")
        (tmp_path / "go").touch()
        out = output(job)
    assert job.returncode == 128 + signal.SIGKILL, out
    for name in ("worker_0", "server_0"):
        log = (tmp_path / "logs" / f"{name}.log").read_text()
        assert "error: worker 1 was killed by signal 9" in log, out


def test_who_drops_out_with_exit_code_0_is_named(tmp_path: Path) -> None:
    code = (
        "import os, mxnet as mx\n"
        "kv, x = mx.kv.create('dist_sync'), mx.nd.ones((5,))\n"
        "if kv.rank == 1: os._exit(0)\n"
        "kv.init('w', x)\n"
    )
    with launched(tmp_path, "--", sys.executable, "-c", code) as job:
        out = output(job)
    assert job.returncode == 1, out
    assert "mercury launch: worker 1 ended with exit code 0 before the job was over" in out


@pytest.mark.drawn(1)
@pytest.mark.parametrize("session", [False, True])
def test_a_process_left_behind_is_not_waited_for(tmp_path: Path, session: bool) -> None:
    marker = f"left{os.getpid()}"
    seen = tmp_path / "seen"
    waits = "import os, sys, time\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.05)"
    child = [waits, str(seen), marker]
    code = (
        "import os, subprocess, sys\n"
        "if os.environ['DMLC_ROLE'] == 'worker':\n"
        f"    child = [sys.executable, '-c', *{child!r}]\n"
        f"    subprocess.Popen(child, start_new_session={session})\n"
        "print('done')\n"
    )
    with launched(tmp_path, "--", sys.executable, "-c", code) as job:
        await_line(job, "worker 1 has ended, but a process that it left behind holds its output")
        if session:
            seen.touch()
        out = output(job)
    assert job.returncode == 0, out
    for name in ("scheduler", "server_0", "worker_0", "worker_1"):
        assert (tmp_path / "logs" / f"{name}.log").read_text() == "done\n"
    wait_gone(marker)  # what is left of a process's group is ended; who leads another goes on
