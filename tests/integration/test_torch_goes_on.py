"""Under PyTorch, too, a job goes on without those that it loses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cluster import ROOT, clean_environment, mercury
from tests.integration.torch_workers import torch_command

pytestmark = pytest.mark.xdist_group("torch apart")  # imported once

SCRIPT = str(Path(__file__).with_name("torch_goes_on.py"))


@pytest.mark.drawn(1)
@pytest.mark.parametrize("wire", ["float32", "bf16"])
def test_a_worker_is_killed(tmp_path: Path, wire: str) -> None:
    env = clean_environment(PYTHONPATH=str(ROOT), KILL_RANK="1", WIRE=wire)
    done = mercury(
        *("launch", "-n", 3, "-s", 2, "--min-workers", 2, "--log-dir", tmp_path / "logs"),
        *("--", *torch_command(), SCRIPT),
        env=env,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    ended = re.findall(r"ended with (\w+), (\d) workers", done.stdout)
    assert len(ended) == 2, done.stdout
    assert len(set(ended)) == 1, done.stdout
    assert ended[0][1] == "2"
    assert "the job has ended well, without worker 1" in done.stderr
