"""Under torchrun its variables are enough; `mercury launch` gives the same."""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from pslite_ext.errors import FAILED_ELSEWHERE
from tests.cluster import ROOT, clean_environment, free_port, mercury
from tests.integration.torch_workers import ranks, torch_python

pytestmark = pytest.mark.xdist_group("torch")  # imported once

STARTED = str(Path(__file__).with_name("torch_started.py"))
SPAWNED = str(Path(__file__).with_name("torch_spawned.py"))
GONE_WITHIN_S = 60


def wait_nobody_left(variable: str) -> None:
    """Until no other process has it in its environment."""
    deadline = time.monotonic() + GONE_WITHIN_S
    while left := [path for path in Path("/proc").glob("[0-9]*/environ") if _has(path, variable)]:
        assert time.monotonic() < deadline, f"left behind: {left}"
        time.sleep(0.1)


def _has(path: Path, variable: str) -> bool:
    try:
        return variable.encode() in path.read_bytes().split(b"\0")
    except OSError:  # it has just ended
        return False


def sums(output: str) -> list[str]:
    return sorted(re.findall(r"summed \d of 2: (.*)", output))


def test_torchrun_and_mercury_launch_are_enough(tmp_path: Path) -> None:
    python = str(torch_python())
    mark = f"TEST_FOLDER={tmp_path}"
    torchrun = [python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    environment = clean_environment(PYTHONPATH=str(ROOT), TEST_FOLDER=str(tmp_path))
    done = subprocess.run(
        [*torchrun, STARTED], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    first = sums(done.stdout)
    assert len(first) == 2
    assert first[0] == first[1]
    wait_nobody_left(mark)

    done = mercury(
        *("launch", "-n", 2, "--log-dir", tmp_path / "logs", "--", python, STARTED),
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert sums(done.stdout) == first
    wait_nobody_left(mark)


def spawned(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = clean_environment(PYTHONPATH=str(ROOT), TEST_FOLDER=str(tmp_path))
    command = [str(torch_python()), SPAWNED, str(free_port()), *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    wait_nobody_left(f"TEST_FOLDER={tmp_path}")
    return done


def test_a_script_may_spawn_its_workers(tmp_path: Path) -> None:
    done = spawned(tmp_path, "spawn")
    assert done.returncode == 0, done.stderr
    # Both write to one pipe, and a line and its end in two calls.
    assert sorted(re.findall(r"summed \d", done.stdout)) == ["summed 0", "summed 1"]
    assert "error" not in done.stderr, done.stderr


@pytest.mark.drawn(1)
@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_a_spawned_worker_s_error_is_told(how: str, tmp_path: Path) -> None:
    done = spawned(tmp_path, how, "fail")
    assert done.returncode == 1
    assert "summed" not in done.stdout
    assert "worker 1 ended: it ended with exit code 1" in done.stderr, done.stderr


def test_a_host_s_first_worker_dies() -> None:
    with ranks("torch_killed.py", "wrap", "0") as job:
        job.wait()
        assert job.workers[0].code == -9, job.report()
        assert job.workers[1].code == FAILED_ELSEWHERE, job.report()
        assert "PeerLostError: lost worker 0" in job.workers[1].output, job.report()
        wait_nobody_left(f"MASTER_PORT={job.port}")


@pytest.mark.drawn(1)
@pytest.mark.parametrize("role", ["scheduler", "server"])
def test_what_a_rank_has_started_ends_before_the_job_begins(role: str, tmp_path: Path) -> None:
    broken = (
        "import os, sys\n"
        f"if os.environ.get('DMLC_ROLE') == '{role}':\n"
        "    print('something is missing', file=sys.stderr, flush=True)\n"
        "    os._exit(7)\n"
    )
    (tmp_path / "sitecustomize.py").write_text(broken)
    with ranks("torch_killed.py", "wrap", "9", PYTHONPATH=str(tmp_path)) as job:
        job.wait()
        who = "the scheduler" if role == "scheduler" else "server 0"
        why = f"PeerLostError: {who}, which worker 0 started, ended with exit code 7 before the job"
        for worker in job.workers:
            assert worker.code != 0, job.report()
            assert why in worker.output, job.report()
            assert "its last lines:\n    something is missing\n" in worker.output, job.report()
        assert "\nsomething is missing\n" in f"\n{job.workers[0].output}", job.report()
        wait_nobody_left(f"MASTER_PORT={job.port}")


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    "manner", ["wrap", "ddp", "sums", "extremes", "futures", "messages", "group"]
)
def test_a_killed_worker_is_named_by_all_others(manner: str) -> None:
    with ranks("torch_killed.py", manner, "1", workers=3) as job:
        job.wait()
        assert job.workers[1].code == -9, job.report()
        for worker in (job.workers[0], job.workers[2]):
            assert worker.code == FAILED_ELSEWHERE, job.report()
            # Others write to the same file, and a line and its end in two calls.
            raised = re.findall(r"raised \w+: (.*)", worker.output)
            assert len(raised) == 1, job.report()
            assert "lost worker 1" in raised[0], job.report()
        wait_nobody_left(f"MASTER_PORT={job.port}")
