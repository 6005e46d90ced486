"""mercury join: a worker for a job that runs, by the file that its launcher has written."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from pslite_ext.launch import join
from pslite_ext.launch.tasks import LaunchError
from tests.cluster import clean_environment, mercury
from tests.launching import LIMIT_S, launch, python

JOB = {
    "DMLC_PS_VAN_TYPE": "mercury",
    "DMLC_NUM_WORKER": "2",
    "DMLC_NUM_SERVER": "3",
    "DMLC_PS_ROOT_URI": "10.0.0.1",
    "DMLC_PS_ROOT_PORT": "9091",
    "MERCURY_JOB_TOKEN": "a token = with blanks",
    "MERCURY_POLICY": "fifo",
    "HOME": "/home/somebody",
}


def test_what_is_written_is_read_and_is_nobody_else_s(tmp_path: Path) -> None:
    path = join.write(tmp_path / "logs", JOB)
    assert path.stat().st_mode & 0o777 == 0o600
    assert join.read(path) == {name: JOB[name] for name in join.NAMES}
    path.chmod(0o644)
    assert join.write(tmp_path / "logs", {**JOB, "DMLC_NUM_WORKER": "4"}) == path
    assert path.stat().st_mode & 0o777 == 0o600
    assert join.read(path)["DMLC_NUM_WORKER"] == "4"


@pytest.mark.parametrize("number", [0, signal.SIGTERM])
def test_the_file_goes_with_its_job(tmp_path: Path, number: int) -> None:
    code = "print('up', flush=True)\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.05)"
    go = tmp_path / "go"
    words = ["-n", "1", "-s", "1", "--min-workers", "1"]
    job = launch(tmp_path, *words, *python(code), str(go))
    assert job.stdout is not None
    assert job.stdout.readline().endswith("] up\n")
    file = tmp_path / "logs" / join.FILE
    assert "MERCURY_JOB_TOKEN=" in file.read_text()
    if number:
        job.send_signal(number)
    else:
        go.touch()
    job.communicate(timeout=LIMIT_S)
    assert job.returncode == (128 + number if number else 0)
    assert not file.exists()


def test_what_another_job_has_written_is_not_removed(tmp_path: Path) -> None:
    path = join.write(tmp_path, JOB)
    join.remove(path, {**JOB, "DMLC_PS_ROOT_PORT": "9092"})
    assert path.exists()
    join.remove(path, JOB)
    assert not path.exists()
    join.remove(path, JOB)


def test_a_job_without_a_token(tmp_path: Path) -> None:
    path = join.write(tmp_path, {k: v for k, v in JOB.items() if k != "MERCURY_JOB_TOKEN"})
    assert "MERCURY_JOB_TOKEN" not in join.read(path)


def test_a_token_that_is_in_a_file_is_written(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret\n")
    job = {**JOB, "MERCURY_JOB_TOKEN": "", "MERCURY_JOB_TOKEN_FILE": str(token)}
    assert join.read(join.write(tmp_path, job))["MERCURY_JOB_TOKEN"] == "secret"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"DMLC_NUM_WORKER=2\n", "does not say DMLC_PS_VAN_TYPE"),
        (b"\xff\xfe", "it is not UTF-8 text"),
        (None, "No such file"),
    ],
)
def test_another_file_is_one_clear_line(tmp_path: Path, content: bytes | None, says: str) -> None:
    path = tmp_path / "join.env"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(LaunchError, match=says):
        join.read(path)


def test_the_command_runs_as_a_worker_that_joins(tmp_path: Path) -> None:
    path = join.write(tmp_path, JOB)
    show = "import os; print(os.environ['DMLC_ROLE'], os.environ['DMLC_TASK_ID'], os.environ['DMLC_PS_ROOT_URI']); raise SystemExit(3)"  # noqa: E501
    env = clean_environment(DMLC_TASK_ID="7")
    done = mercury("join", path, "--", sys.executable, "-c", show, env=env)
    assert (done.returncode, done.stdout) == (3, "worker -2 10.0.0.1\n"), done.stderr


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ((), 2, "there is no command to run"),
        (("--", "no-such-command"), 127, "cannot run no-such-command"),
        (("--server", "--", "train.py"), 2, "a server runs no command"),
    ],
)
def test_mistakes(tmp_path: Path, words: tuple[str, ...], code: int, says: str) -> None:
    options = [word for word in words if word == "--server"]
    rest = [word for word in words if word not in options]
    done = mercury("join", *options, join.write(tmp_path, JOB), *rest)
    assert done.returncode == code
    assert says in done.stderr
