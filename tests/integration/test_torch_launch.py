"""Under torchrun its variables are enough; `mercury launch` gives the same."""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path

from pslite_ext.errors import FAILED_ELSEWHERE
from tests.cluster import ROOT, clean_environment, mercury
from tests.integration.torch_workers import PYTHON, need_torch, ranks

STARTED = str(Path(__file__).with_name("torch_started.py"))
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


def weights(output: str) -> list[str]:
    return sorted(re.findall(r"trained \d of 2: (.*)", output))


def test_torchrun_and_mercury_launch_are_enough(tmp_path: Path) -> None:
    need_torch()
    mark = f"MERCURY_TEST={tmp_path}"
    torchrun = [str(PYTHON), "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    environment = clean_environment(PYTHONPATH=str(ROOT), MERCURY_TEST=str(tmp_path))
    done = subprocess.run(
        [*torchrun, STARTED], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    first = weights(done.stdout)
    assert len(first) == 2
    assert first[0] == first[1]
    wait_nobody_left(mark)

    done = mercury(
        *("launch", "-n", 2, "--log-dir", tmp_path / "logs", "--", PYTHON, STARTED),
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert weights(done.stdout) == first
    wait_nobody_left(mark)


def test_a_host_s_first_worker_dies() -> None:
    with ranks("torch_started.py", "die", "0") as job:
        job.wait()
        assert job.workers[0].code == -9, job.report()
        assert job.workers[1].code == FAILED_ELSEWHERE, job.report()
        assert "PeerLostError: lost worker 0" in job.workers[1].output, job.report()
        wait_nobody_left(f"MASTER_PORT={job.port}")
