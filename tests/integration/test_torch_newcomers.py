"""Workers come to a job that runs: in the place of one that was lost, and in one more."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.integration.joining import Joinable, check_followed_and_joined, ended
from tests.integration.torch_workers import torch_command

pytestmark = pytest.mark.xdist_group("torch apart")  # imported once

SCRIPT = Path(__file__).with_name("torch_newcomers.py")


def job_in(folder: Path, **env: str) -> Joinable:
    return Joinable(folder, (*torch_command(), SCRIPT), **env)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("env", [{"WIRE": "float32"}, {"WIRE": "auto"}, {"LOCAL": "1"}], ids=str)
def test_one_is_followed_and_one_joins(tmp_path: Path, env: dict[str, str]) -> None:
    check_followed_and_joined(job_in(tmp_path, **env))


def test_two_raise_in_one_step_and_are_followed(tmp_path: Path) -> None:
    job = job_in(tmp_path, WAITS_FOR="3")
    with job.launched("-n", 3, "--replace", 2, RAISES_AT="30") as first:
        for worker in (1, 2):
            first.says(f"worker {worker} is in; the job goes on with")
        job.go()
        assert first.end() == 0, first.output
    ends = ended(first)
    assert sorted(rank for rank, _, _ in ends) == ["0", "1", "2"], first.output
    assert len({end for _, _, end in ends}) == 1, ends


def test_one_that_dies_while_it_is_let_in_keeps_nobody_out(tmp_path: Path) -> None:
    job = job_in(tmp_path, WAITS_FOR="3")
    with job.launched() as first:
        dies = job.joined("dies", KILLS="itself")
        assert dies.end() != 0
        assert "restored after" in dies.output, dies.output
        more = job.joined("more")
        job.go()
        assert more.end() == 0, more.output + first.output
        assert first.end() == 0, first.output
    ends = ended(first, more)
    assert len(ends) == 3, first.output + more.output
    assert len({end for _, _, end in ends}) == 1, ends


def test_parts_are_the_whole() -> None:
    command = [*torch_command(), str(SCRIPT.with_name("torch_parts.py"))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout == "alike\n", done.stdout + done.stderr


def test_another_model_is_its_own_failure_alone(tmp_path: Path) -> None:
    job = job_in(tmp_path, WAITS_FOR="2")
    with job.launched() as first:
        wrong = job.joined("wrong", HIDDEN="101")
        assert wrong.end() != 0
        assert "size mismatch" in wrong.output, wrong.output
        job.go()
        assert first.end() == 0, first.output
    assert len({end for _, _, end in ended(first)}) == 1
    assert "lost worker 2" in first.output or "worker 2 ended" in first.output


def test_too_late(tmp_path: Path) -> None:
    job = job_in(tmp_path, WAITS_FOR="2")
    with job.launched() as first:
        late = job.joined("late", WAITS="1")
        first.says("worker 2 comes to the job")
        job.go()
        assert first.end() == 0, first.output
        (tmp_path / "may ask").touch()
        assert late.end() != 0
        assert "the job ended before this worker was let in" in late.output


def test_who_lets_another_in_is_lost_meanwhile(tmp_path: Path) -> None:
    job = job_in(tmp_path, WAITS_FOR="1")
    with job.launched() as first:
        new = job.joined("new", KILLS="1")
        assert new.end() != 0
        assert "another node went while it was let in; start it again" in new.output
        job.go()
        assert first.end() == 0, first.output
    assert [rank for rank, _, _ in ended(first)] == ["1"]
    assert "the job goes on with 1 worker" in first.output


def test_one_that_hangs_is_done_without(tmp_path: Path) -> None:
    job = job_in(tmp_path, WAITS_FOR="2", PATIENCE_S="1")
    with job.launched() as first:
        new = job.joined("new", HANGS="1")
        first.says("worker 2: it has not loaded in")
        (tmp_path / "go on").touch()
        assert new.end() != 0
        assert "the job goes on without it" in new.output, new.output
        job.go()
        assert first.end() == 0, first.output
    assert len({end for _, _, end in ended(first)}) == 1


def test_the_scheduler_is_lost_while_one_is_let_in(tmp_path: Path) -> None:
    job = job_in(tmp_path, WAITS_FOR="2", MERCURY_HEARTBEAT_TIMEOUT_MS="5000")
    with job.launched() as first:
        new = job.joined("new", HANGS="1")
        new.says("restored after")
        os.kill(first.child("scheduler"), signal.SIGKILL)
        job.go()
        assert first.end() == 0, first.output
        (tmp_path / "go on").touch()
        assert new.end() != 0
        assert "PeerLostError" in new.output, new.output
    assert len({end for _, _, end in ended(first)}) == 1
    assert len(ended(first)) == 2
