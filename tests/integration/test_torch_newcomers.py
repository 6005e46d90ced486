"""Workers come to a job that runs: in the place of one that was lost, and in one more."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cluster import ROOT, clean_environment
from tests.integration.torch_workers import torch_python

pytestmark = pytest.mark.xdist_group("torch")  # imported once

SCRIPT = str(Path(__file__).with_name("torch_newcomers.py"))
MERCURY = (sys.executable, "-m", "tracer")
TIMEOUT_S = 90


class Running:
    """A process, and what it has printed so far."""

    def __init__(self, log: Path, *words: object, **env: str) -> None:
        self.log = log
        with log.open("wb") as out:
            self.process = subprocess.Popen(
                [*map(str, words), "--", torch_python(), SCRIPT, str(log.parent)],
                env=clean_environment(PYTHONPATH=str(ROOT), **env),
                stdout=out,
                stderr=subprocess.STDOUT,
            )

    @property
    def output(self) -> str:
        return self.log.read_text()

    def says(self, text: str) -> None:
        until = time.monotonic() + TIMEOUT_S
        while text not in self.output:
            assert self.process.poll() is None, self.output
            assert time.monotonic() < until, self.output
            time.sleep(0.02)

    def end(self) -> int:
        return self.process.wait(TIMEOUT_S)


@contextmanager
def launched(folder: Path, *more: object, **env: str) -> Iterator[Running]:
    job = Running(
        folder / "job",
        *(*MERCURY, "launch", "-n", 2, "-s", 2, "--min-workers", 1, "--max-workers", 3),
        *("--log-dir", folder / "logs", *more),
        **env,
    )
    try:
        yield job
    finally:
        job.process.terminate()
        job.process.wait(TIMEOUT_S)


def joined(folder: Path, name: str, **env: str) -> Running:
    return Running(folder / name, *MERCURY, "join", folder / "logs" / "join.env", **env)


def ended(*those: Running) -> list[tuple[str, ...]]:
    pattern = r"worker (\d) began after (\d+); (\w+ at \d+, rate [\d.e-]+)"
    return [found for one in those for found in re.findall(pattern, one.output)]


@pytest.mark.parametrize("wire", ["float32", "auto"])
def test_one_is_followed_and_one_joins(tmp_path: Path, wire: str) -> None:
    env = {"WIRE": wire, "WAITS_FOR": "3"}
    with launched(tmp_path, "--replace", 1, **env, DIES_AT="30") as job:
        job.says("worker 1 is in; the job goes on with 2 workers")
        more = joined(tmp_path, "more", **env)
        (tmp_path / "go").touch()
        assert more.end() == 0, more.output + job.output
        assert job.end() == 0, job.output
    ends = ended(job, more)
    assert sorted(rank for rank, _, _ in ends) == ["0", "1", "2"], job.output
    assert len({end for _, _, end in ends}) == 1, ends
    began = {rank: int(step) for rank, step, _ in ends}
    assert began["0"] == 0 < 30 < began["1"] < began["2"]
    assert "worker 1 is started again (1 of 1)" in job.output


def test_another_model_is_its_own_failure_alone(tmp_path: Path) -> None:
    with launched(tmp_path, WAITS_FOR="2") as job:
        job.says("mercury join")
        time.sleep(1)
        wrong = joined(tmp_path, "wrong", WAITS_FOR="2", HIDDEN="101")
        assert wrong.end() != 0
        assert "does not fit" in wrong.output or "size mismatch" in wrong.output, wrong.output
        (tmp_path / "go").touch()
        assert job.end() == 0, job.output
    assert len({end for _, _, end in ended(job)}) == 1
    assert "lost worker 2" in job.output or "worker 2 ended" in job.output


def test_who_lets_another_in_is_lost_meanwhile(tmp_path: Path) -> None:
    with launched(tmp_path, WAITS_FOR="1") as job:
        job.says("mercury join")
        new = joined(tmp_path, "new", WAITS_FOR="1", KILLS="1")
        assert new.end() != 0
        assert "another node was lost while it was let in; start it again" in new.output
        (tmp_path / "go").touch()
        assert job.end() == 0, job.output
    assert [rank for rank, _, _ in ended(job)] == ["1"]
    assert "the job goes on with 1 worker" in job.output
