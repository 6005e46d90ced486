"""Jobs started by the wheel's own launcher and over ssh, as users start them."""

from __future__ import annotations

import getpass
import itertools
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import mxnet
import pytest

from pslite_ext.errors import FAILED_ELSEWHERE
from scripts.lab.systems.rendezvous import await_port
from tests.cluster import ROOT, clean_environment, free_port, wait_gone

TRAINING = ROOT / "tests" / "faults" / "training.py"
TOOL = Path(mxnet.__file__).parent / "tools" / "launch.py"
SSHD = shutil.which("sshd") or "/usr/sbin/sshd"
LIMIT_S = 120
# Upstream's tracker takes the first free port from 9091 on: two at a time would take the same.
pytestmark = pytest.mark.xdist_group("tracker")


def environment(**changes: str) -> dict[str, str]:
    usual = {"STEPS": "5", "OMP_NUM_THREADS": "1", "DMLC_PS_VAN_TYPE": "zmq"}
    return clean_environment(**{**usual, **changes})


def tool(*arguments: str, **changes: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(TOOL), *arguments],
        env=environment(**changes),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def test_the_wheel_s_launcher() -> None:
    job = tool("-n", "2", "-s", "2", "--launcher", "local", sys.executable, str(TRAINING))
    out, _ = job.communicate(timeout=LIMIT_S)
    assert job.returncode == 0, out
    assert out.count("trained") == 2, out


def waiting_for(processes: int, folder: Path, says: str) -> Path:
    """A script that ends when so many processes have run `says`.

    Upstream's launcher ends with the scheduler, and starts nobody any more.
    """
    script = folder / "script.py"
    script.write_text(
        f"""
import os, pathlib, sys, time
{says}
said = pathlib.Path({str(folder)!r})
(said / f"said-{{os.getpid()}}").touch()
while len(list(said.glob("said-*"))) < {processes}:
    time.sleep(0.05)
"""
    )
    return script


def test_the_wheel_s_launcher_leaves_options_alone(tmp_path: Path) -> None:
    says = "if os.environ['DMLC_ROLE'] == 'worker': print('got', sys.argv[1:], flush=True)"
    script = waiting_for(3, tmp_path, says)
    words = ["--lr", "0.1", "-n", "7", "--env", "x"]
    job = tool("-n", "1", "-s", "1", "--launcher", "local", sys.executable, str(script), *words)
    out, _ = job.communicate(timeout=LIMIT_S)
    assert f"got {words}" in out, out


@pytest.mark.parametrize(
    ("given", "length"),
    [({}, 64), ({"MERCURY_JOB_TOKEN": ""}, 64), ({"MERCURY_JOB_TOKEN_FILE": "secret"}, 0)],
)
def test_the_wheel_s_launcher_makes_a_token(
    given: dict[str, str], length: int, tmp_path: Path
) -> None:
    says = "print('token:%d.' % len(os.environ.get('MERCURY_JOB_TOKEN', '')), flush=True)"
    command = ("--launcher", "local", sys.executable, str(waiting_for(3, tmp_path, says)))
    job = tool("-n", "1", "-s", "1", *command, **given)
    out, _ = job.communicate(timeout=LIMIT_S)
    assert job.returncode == 0, out
    assert out.count(f"token:{length}.") == 3, out  # in every process


def test_the_wheel_s_launcher_fails_with_the_job() -> None:
    job = tool(
        *("-n", "2", "-s", "1", "--launcher", "local", sys.executable, str(TRAINING)),
        STEPS="1000",
        FAIL_RANK="1",
    )
    out, _ = job.communicate(timeout=LIMIT_S)
    assert job.returncode == 1, out
    assert "ValueError: a mistake in the script" in out, out
    assert "launch: worker (DMLC_TASK_ID=1) ended with exit code 1 first" in out, out
    assert "MERCURY_JOB_TOKEN" not in out


@pytest.mark.parametrize("culprit", ["1", "nobody"])
def test_the_wheel_s_launcher_names_nobody_who_failed_for_another(
    culprit: str, tmp_path: Path
) -> None:
    script = waiting_for(4, tmp_path, "")  # or those who are started last are not started
    with script.open("a") as more:
        failed = f"os.environ.get('DMLC_TASK_ID') == '{culprit}'"
        more.write(f"sys.exit(7 if {failed} else {FAILED_ELSEWHERE})\n")
    command = ("--launcher", "local", sys.executable, str(script))
    job = tool("-n", "2", "-s", "1", *command)
    out, _ = job.communicate(timeout=LIMIT_S)
    first, last = (line for line in out.splitlines() if line.startswith("launch: "))
    another = "launch: a process ended because another one had failed"
    worker = "launch: worker (DMLC_TASK_ID=1) ended with exit code 7"
    if culprit == "1":  # which may end before or after the others
        assert first.partition(";")[0] in (another, worker), out
        assert (last, job.returncode) == (f"{worker} first", 7), out
    else:
        assert first == f"{another}; the others get 20 s to end", out
        assert (last, job.returncode) == (another, FAILED_ELSEWHERE), out


def test_the_wheel_s_launcher_ends_what_it_started() -> None:
    marker = f"tool{os.getpid()}"
    job = tool(
        *("-n", "2", "-s", "1", "--launcher", "local", sys.executable, str(TRAINING), marker),
        STEPS="100000",
    )
    assert job.stdout is not None
    while "looping" not in job.stdout.readline():
        assert job.poll() is None
    job.send_signal(signal.SIGINT)
    job.wait(timeout=LIMIT_S)
    assert job.returncode == 130
    wait_gone(marker)


@pytest.fixture
def ssh_port(tmp_path: Path) -> Iterator[int]:
    """A server for this user alone, on loopback, with keys of its own."""
    if not os.path.exists(SSHD) or shutil.which("ssh") is None:
        pytest.skip("no ssh server and client here (in Debian: openssh-server)")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    for name in ("host", "user"):
        key = str(tmp_path / name)
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    keys = tmp_path / "authorized_keys"
    shutil.copy(tmp_path / "user.pub", keys)
    keys.chmod(0o600)
    port = free_port()
    options = {
        "HostKey": tmp_path / "host",
        "AuthorizedKeysFile": keys,
        "PidFile": tmp_path / "pid",
        "ListenAddress": f"127.0.0.1:{port}",
        "PasswordAuthentication": "no",
        "StrictModes": "no",
        "UsePAM": "no",
        "PermitRootLogin": "yes",
    }
    config = tmp_path / "sshd_config"
    config.write_text("".join(f"{k} {v}\n" for k, v in options.items()))
    server = subprocess.Popen([SSHD, "-D", "-e", "-f", str(config)], stderr=subprocess.DEVNULL)
    # `ssh` as found on PATH: the real one, with this test's keys and nobody's known hosts.
    wrapper = tmp_path / "bin" / "ssh"
    wrapper.parent.mkdir()
    wrapper.write_text(
        f"#!/bin/sh\nexec {shutil.which('ssh')} -F /dev/null -i {tmp_path / 'user'} "
        f"-o UserKnownHostsFile={tmp_path / 'known'} -o LogLevel=ERROR "
        f'-l {getpass.getuser()} "$@"\n'
    )
    wrapper.chmod(0o755)
    try:
        await_port("127.0.0.1", port)
        yield port
    finally:
        server.terminate()
        server.wait()


@pytest.fixture
def hosts(ssh_port: int, tmp_path: Path) -> str:
    file = tmp_path / "hosts"
    file.write_text(f"127.0.0.1:{ssh_port}\n")
    return str(file)


def ssh_environment(folder: Path) -> dict[str, str]:
    return {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "MERCURY_JOB_TOKEN": "over-ssh"}


def launch(hosts: str, workers: int, *words: str) -> subprocess.Popen[str]:
    """`mercury launch` with the hosts' folder for logs and settings."""
    folder = Path(hosts).parent
    command = [sys.executable, "-m", "tracer", "launch", "-n", str(workers), "-s", "1", "-H", hosts]
    return subprocess.Popen(
        [*command, "--log-dir", str(folder / "logs"), *words],
        env=environment(**ssh_environment(folder)),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_mercury_launch_over_ssh(hosts: str) -> None:
    passed = ("--env", "STEPS", "--env", "OMP_NUM_THREADS")
    job = launch(hosts, 2, *passed, "--", sys.executable, str(TRAINING))
    out, err = job.communicate(timeout=LIMIT_S)
    assert job.returncode == 0, out + err
    assert out.count("trained") == 2, out


def test_interrupted_over_ssh_nothing_is_left(hosts: str) -> None:
    marker = f"remote{os.getpid()}"
    code = "import time; print('up', flush=True); time.sleep(600)"
    job = launch(hosts, 1, "--", sys.executable, "-c", code, marker)
    assert job.stdout is not None
    ups = (line for line in job.stdout if line.rstrip().endswith("up"))  # a shell may say more
    assert len(list(itertools.islice(ups, 3))) == 3
    job.send_signal(signal.SIGINT)
    assert job.wait(timeout=LIMIT_S) == 130
    wait_gone(marker)


def test_what_is_left_behind_over_ssh_is_ended(hosts: str) -> None:
    """It holds the output open, for which ssh would wait."""
    marker = f"remote_left{os.getpid()}"
    left = f"'-c', 'import time; time.sleep(600)', '{marker}'"
    code = (
        "import os, subprocess, sys\n"
        "if os.environ['DMLC_ROLE'] == 'worker':\n"
        f"    subprocess.Popen([sys.executable, {left}])\n"
        "    sys.exit(3)\n"
    )
    job = launch(hosts, 1, "--", sys.executable, "-c", code)
    out, err = job.communicate(timeout=LIMIT_S)
    assert job.returncode == 3, out + err
    wait_gone(marker)


def test_the_wheel_s_launcher_over_ssh(hosts: str, tmp_path: Path) -> None:
    words = ("-n", "1", "-s", "1", "--launcher", "ssh", "-H", hosts, "STEPS=5")
    job = tool(*words, sys.executable, str(TRAINING), **ssh_environment(tmp_path))
    out, _ = job.communicate(timeout=LIMIT_S)
    assert job.returncode == 0, out
    assert out.count("trained") == 1, out
    assert "over-ssh" not in out
