"""A job that may lose workers and servers goes on without them, and all who are left have the same
weights."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cluster import Cluster, Process, clean_environment, cluster, mercury

SCRIPT = [str(Path(__file__).with_name("training_on.py"))]
ENDED = re.compile(r"ended with (\w+) after (\d+) steps, (\d+) workers")
SILENT_MS = 6000


@contextmanager
def training(tmp_path: Path, workers: int = 3, **env: str) -> Iterator[Cluster]:
    told = {
        "MERCURY_MIN_WORKERS": "1",
        "MERCURY_HEARTBEAT_TIMEOUT_MS": str(SILENT_MS),
        "STOP_FILE": str(tmp_path / "stop"),
        **env,
    }
    with cluster(SCRIPT, workers=workers, servers=2, van="mercury", env=told) as job:
        job.wait_output("looping")
        yield job


def others_end(job: Cluster, tmp_path: Path, lost: list[Process], workers: int) -> None:
    """After all of them have heard who is lost."""
    left = [process for process in job.processes if process not in lost]
    for process in lost:
        if process.role == "scheduler":
            continue
        said = re.compile(rf"\b{process.name}\b.*; the job goes on")
        job.wait_until(
            f"the scheduler does without {process.name}",
            lambda said=said: said.search(job.scheduler.output) is not None,  # type: ignore[misc]
        )
    (tmp_path / "stop").touch()
    job.wait_until("the others end", lambda: all(p.code is not None for p in left))
    assert [p.code for p in left] == [0] * len(left), job.report()
    found = [ENDED.search(p.output) for p in left if p.role == "worker"]
    assert len({match and match.groups() for match in found}) == 1, job.report()
    assert found[0] is not None, job.report()
    assert int(found[0][3]) == workers, job.report()


@pytest.mark.drawn(2)
@pytest.mark.parametrize("victims", ["worker 1", "worker 0", "server 1", "server 0, worker 0"])
def test_killed(victims: str, tmp_path: Path) -> None:
    with training(tmp_path) as job:
        lost = [p for p in job.processes if p.name in victims.split(", ")]
        for process in lost:
            process.kill()
        others_end(job, tmp_path, lost, 3 - sum(p.role == "worker" for p in lost))


@pytest.mark.drawn(1)
@pytest.mark.parametrize("victims", ["worker 2", "server 0"])
def test_frozen(victims: str, tmp_path: Path) -> None:
    with training(tmp_path) as job:
        lost = [p for p in job.processes if p.name == victims]
        lost[0].kill(signal.SIGSTOP)
        others_end(job, tmp_path, lost, 3 - sum(p.role == "worker" for p in lost))
        lost[0].kill(signal.SIGCONT)  # it is told, and ends
        job.wait()
        assert lost[0].code not in (0, None), job.report()
        assert "the job goes on without it" in lost[0].output, job.report()


def test_without_a_scheduler(tmp_path: Path) -> None:
    with training(tmp_path) as job:
        job.scheduler.kill()
        left = [*job.workers, *job.servers]
        for process in left:
            job.wait_until(
                f"{process.name} trains on alone",
                lambda p=process: "no barrier is passed" in p.output,  # type: ignore[misc]
            )
        (tmp_path / "stop").touch()
        job.wait_until("all end", lambda: all(p.code is not None for p in left))
        assert [p.code for p in left] == [0] * len(left), job.report()
        assert len({ENDED.search(worker.output)[1] for worker in job.workers}) == 1  # type: ignore


@pytest.mark.drawn(1)
@pytest.mark.parametrize("meanwhile", ["server 0", "worker 2"])
def test_another_scheduler(meanwhile: str, tmp_path: Path) -> None:
    """It hears of what was lost while there was none, and decides about what comes after."""
    journal = tmp_path / "journal"
    job_of = training(tmp_path, MERCURY_JOURNAL=str(journal), MERCURY_HEARTBEAT_TIMEOUT_MS="20000")
    with job_of as job:
        first = job.scheduler
        first.kill()
        job.wait_until("it is gone", lambda: first.code is not None)
        lost = [p for p in job.processes if p.name == meanwhile]
        for process in lost:
            process.kill()
        second = job.start_again("scheduler")
        job.wait_until("another goes on", lambda: "goes on with a job of 3" in second.output)
        after = job.workers[1]
        after.kill()
        workers = 2 - sum(p.role == "worker" for p in lost)
        others_end(job, tmp_path, [first, *lost, after], workers)
        assert "no barrier is passed" not in job.workers[0].output, job.report()
        assert not journal.exists(), job.report()


def test_a_server_comes_back(tmp_path: Path) -> None:
    """So the other one may be lost, too; and that one comes back as well."""
    with training(tmp_path) as job:
        lost = []
        for rank in (1, 0):
            (victim,) = (p for p in job.servers if p.rank == rank and p.code is None)
            victim.kill()
            lost.append(victim)
            again = job.start_again("server", rank)
            job.wait_until(
                "it is in",
                lambda p=again, n=rank: (  # type: ignore[misc]
                    f"server {n} is in" in p.output and f"server {n} is in" in job.scheduler.output
                ),
            )
        others_end(job, tmp_path, lost, 3)
        assert "worker" not in job.scheduler.output.replace("workers", ""), job.report()


def test_a_server_that_nobody_misses(tmp_path: Path) -> None:
    with training(tmp_path) as job:
        second = job.start_again("server", 1)
        job.wait_until("it ends", lambda: second.code is not None)
        assert second.code == 1, job.report()
        said = "server 1 is still in the job, and this node was started as that one"
        assert said in second.output, job.report()
        (tmp_path / "stop").touch()
        first = [p for p in job.processes if p is not second]
        job.wait_until("the others end", lambda: all(p.code == 0 for p in first))


def test_nobody_to_go_on_with(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    with training(tmp_path, MERCURY_JOURNAL=str(journal)) as job:
        written = journal.read_text()
        for process in job.processes:
            process.kill()
        second = job.start_again("scheduler")
        job.wait_until("it ends", lambda: second.code is not None)
        assert second.code != 0, job.report()
        assert "nobody is there any more" in second.output, job.report()
        assert not journal.exists()
        moved = written.replace("address 127.0.0.1", "address 127.0.0.2")
        for text, said in (
            ("something else", ": it is no record of a job"),
            (moved, " is of the scheduler at 127.0.0.2"),
        ):
            journal.write_text(text)
            other = job.start_again("scheduler")
            job.wait_until("it ends", lambda other=other: other.code is not None)  # type: ignore[misc]
            assert f"MERCURY_JOURNAL={journal}{said}" in other.output, job.report()
            assert journal.read_text() == text


def test_an_exception(tmp_path: Path) -> None:
    """The others read how many they are of sums by rows."""
    with training(tmp_path, FAIL_RANK="1", ROWS="1") as job:
        others_end(job, tmp_path, [job.workers[1]], 2)
        job.wait()
        assert job.workers[1].code == 1, job.report()


def test_fewer_batches(tmp_path: Path) -> None:
    with training(tmp_path, STOP_RANK="2") as job:
        job.wait_until("worker 2 ends", lambda: job.workers[2].code is not None)
        assert job.workers[2].code == 0, job.report()
        (tmp_path / "stop").touch()
        job.check()
        found = [ENDED.search(worker.output) for worker in job.workers[:2]]
        assert found[0] is not None
        assert found[1] is not None
        assert found[0].groups() == found[1].groups(), job.report()
        assert int(found[0][3]) == 2, job.report()


def test_too_few(tmp_path: Path) -> None:
    """What it needs is said, and who was lost."""
    with training(tmp_path, MERCURY_MIN_WORKERS="3") as job:
        job.workers[1].kill()
        others = [p for p in job.processes if p is not job.workers[1]]
        job.wait_until("the others end", lambda: all(p.code is not None for p in others))
        for process in others:
            assert process.code, job.report()
            assert "lost worker 1" in process.output, job.report()
            assert "2 workers are left, fewer than MERCURY_MIN_WORKERS=3" in process.output


def test_launched(tmp_path: Path) -> None:
    """The launcher says what it has lost, and that the job has ended well."""
    launched = ["launch", "-n", 3, "-s", 1, "--log-dir", tmp_path / "logs", "--min-workers"]
    env = clean_environment(KILL_RANK="1", STEPS="60")
    done = mercury(*launched, 2, "--", *SCRIPT, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "lost worker 1: it was killed by signal 9; its last lines:" in done.stderr
    assert "the job has ended well, without worker 1" in done.stderr
    digests = {match[1] for match in ENDED.finditer(done.stdout)}
    assert len(digests) == 1, done.stdout

    done = mercury(*launched, 2, "--", *SCRIPT, env={**env, "KILL_SCHEDULER_RANK": "0"})
    assert done.returncode == 0, done.stdout + done.stderr
    assert "lost scheduler: it was killed by signal 9" in done.stderr
    assert "another scheduler goes on (1 of 5)" in done.stderr
    assert "the job has ended well, without worker 1" in done.stderr
    assert len({match[1] for match in ENDED.finditer(done.stdout)}) == 1, done.stdout

    done = mercury(*launched, 3, "--", *SCRIPT, env=env)
    assert done.returncode != 0
    assert "fewer than MERCURY_MIN_WORKERS=3" in done.stdout + done.stderr

    done = mercury(*launched, 4, "--", *SCRIPT, env=env)
    assert done.returncode == 2
    assert "MERCURY_MIN_WORKERS is '4'; allowed: 0 to 3" in done.stderr
