"""A launched job that others join, and what each process has printed so far."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.cluster import ROOT, clean_environment

MERCURY = (sys.executable, "-m", "tracer")
TIMEOUT_S = 90


class Running:
    """A process, and its log."""

    def __init__(self, log: Path, command: Sequence[object], **env: str) -> None:
        self.log = log
        with log.open("wb") as out:
            self.process = subprocess.Popen(
                [*map(str, command)],
                cwd=log.parent,
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

    def child(self, role: str, rank: int = 0) -> int:
        """The number of the process that it has started as that."""
        for task in Path(f"/proc/{self.process.pid}/task").iterdir():
            for number in (task / "children").read_text().split():
                environment = Path(f"/proc/{number}/environ").read_bytes().split(b"\0")
                number_of = f"DMLC_TASK_ID={rank}".encode()
                its = f"DMLC_ROLE={role}".encode() in environment
                if its and (role == "scheduler" or number_of in environment):
                    return int(number)
        raise AssertionError(f"no {role} is there: {self.output}")


class Joinable:
    """Two workers at first, three at most, and two servers. The script is given the folder."""

    def __init__(self, folder: Path, command: Sequence[object], **env: str) -> None:
        self.folder, self.env = folder, env
        self._command = ("--", *command, folder)

    @contextmanager
    def launched(self, *more: object, **env: str) -> Iterator[Running]:
        words = (*MERCURY, "launch", "-n", 2, "-s", 2, "--min-workers", 1, "--max-workers", 3)
        logs = ("--log-dir", self.folder / "logs")
        job = Running(
            self.folder / "job", (*words, *logs, *more, *self._command), **{**self.env, **env}
        )
        try:
            job.says("mercury join")  # the file by which they do is there
            yield job
        finally:
            job.process.terminate()
            job.process.wait(TIMEOUT_S)

    def joined(self, name: str, **env: str) -> Running:
        file = self.folder / "logs" / "join.env"
        words = (*MERCURY, "join", file, *self._command)
        return Running(self.folder / name, words, **{**self.env, **env})

    def serves(self) -> Running:
        words = (*MERCURY, "join", "--server", self.folder / "logs" / "join.env")
        return Running(self.folder / "server", words)

    def go(self) -> None:
        """Once WAITS_FOR workers are there, they end."""
        (self.folder / "go").touch()


def ended(*those: Running) -> list[tuple[str, ...]]:
    """Of each worker: its rank, after which step it began, and what all have alike."""
    pattern = r"worker (\d) began after (\d+); (\w+ at \d+, rate [\d.e-]+)"
    return [found for one in those for found in re.findall(pattern, one.output)]


def check_followed_and_joined(job: Joinable) -> None:
    """Worker 1 dies and is followed, then each server; another worker joins; all end alike."""
    env = {"WAITS_FOR": "3"}
    with job.launched("--replace", 2, **env, DIES_AT="30") as first:
        first.says("worker 1 is in; the job goes on with 2 workers")
        os.kill(first.child("server"), signal.SIGKILL)
        first.says("is started again (2 of 2)")
        first.says("[scheduler] [mercury scheduler] server 0 is in")
        os.kill(first.child("server", 1), signal.SIGKILL)
        server = job.serves()
        first.says("[scheduler] [mercury scheduler] server 1 is in")
        more = job.joined("more", **env)
        job.go()
        assert more.end() == 0, more.output + first.output
        assert first.end() == 0, first.output
        assert server.end() == 0, server.output
    ends = ended(first, more)
    assert sorted(rank for rank, _, _ in ends) == ["0", "1", "2"], first.output
    assert len({end for _, _, end in ends}) == 1, ends
    began = {rank: int(step) for rank, step, _ in ends}
    assert began["0"] == 0 < 30 < began["1"] < began["2"]
    assert "worker 1 is started again (1 of 2)" in first.output
