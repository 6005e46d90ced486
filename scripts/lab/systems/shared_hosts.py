"""Several jobs on the same hosts: some are let train, and the iterations of each are timed."""

from __future__ import annotations

import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from scripts.lab.bed.bed import LoopbackBed
from scripts.lab.bed.namespaces import LabError
from scripts.lab.systems.job import CORES, PORT, JobFailed, MeasuredJob, machine_cpu_s
from scripts.lab.systems.system import System
from scripts.lab.workloads.allowance import allow
from scripts.lab.workloads.job_config import Config

SETTLED = 2  # iterations after which a job is what it will be
_ENDLESS = 1_000_000  # rounds
_LOOK_S = 0.05
_WAIT_S = 120.0  # for all to have started, or to have trained as long as was asked


class Trainee:
    """A job that trains as many iterations as it is allowed to."""

    def __init__(
        self, bed: LoopbackBed, system: System, config: Config, port: int, folder: Path
    ) -> None:
        self.ends: list[float] = []  # of its iterations: when the slowest worker had each
        self.started = False
        self._file = folder / str(port)
        self._workers = sum(host.startswith("worker") for host in bed.hosts)
        self._waiting: set[int] = set()
        self._turns: defaultdict[int, list[float]] = defaultdict(list)
        self.allow(0)
        told = replace(config, rounds=_ENDLESS, sample_s=0.0, allowed_file=str(self._file))
        self.job = MeasuredJob(bed, system, told, env={"DMLC_PS_ROOT_PORT": str(port)})

    def allow(self, iterations: int = _ENDLESS) -> None:
        """So many in all, those that are over too; a number never falls."""
        allow(self._file, iterations)

    def look(self) -> None:
        """JobFailed if one of its processes has ended badly, or a sum is wrong."""
        for process, event in self.job.heard():
            if event["event"] == "started":
                self._waiting.add(int(process.host.removeprefix("worker")))
                self.started = len(self._waiting) == self._workers
            elif event["event"] == "round":
                if event["wrong"]:
                    raise JobFailed(f"wrong sums: {'; '.join(map(str, event['wrong'][:3]))}")
                ends = self._turns[int(event["turn"])]
                ends.append(float(event["t"]))
                if len(ends) == self._workers:
                    self.ends.append(max(ends))
        self.job.check_alive()


class Company(NamedTuple):
    times_s: dict[str, float]  # an iteration of each, on average
    processors: float  # the share of this machine's that was busy


class SharedHosts:
    def __init__(self, jobs: Mapping[str, Trainee]) -> None:
        self._jobs = jobs

    def wait(self) -> None:
        """Until all have started."""
        self._until(lambda: all(job.started for job in self._jobs.values()), "start")

    def alone(self, name: str, iterations: int) -> float:
        """Mean seconds of an iteration while no other job has anything to do."""
        job = self._jobs[name]
        before = len(job.ends)
        job.allow(before + SETTLED + iterations)
        self._until(lambda: len(job.ends) == before + SETTLED + iterations, f"{name} trains alone")
        return mean_s(job.ends[before + SETTLED - 1 :])

    def together(self, names: Sequence[str], iterations: int) -> Company:
        """The same of each while all of them train; they go on."""
        chosen = {name: self._jobs[name] for name in names}
        before = {name: len(job.ends) for name, job in chosen.items()}
        for job in chosen.values():
            job.allow()

        def window() -> dict[str, list[float]] | None:
            """Ends of the iterations from when all had settled; None: there are too few."""
            if any(len(job.ends) < before[name] + SETTLED for name, job in chosen.items()):
                return None
            since = max(job.ends[before[name] + SETTLED - 1] for name, job in chosen.items())
            ends = {n: [end for end in job.ends if end >= since] for n, job in chosen.items()}
            return ends if min(map(len, ends.values())) > iterations else None

        began, busy = time.monotonic(), machine_cpu_s()
        self._until(lambda: window() is not None, f"{' and '.join(names)} train")
        share = (machine_cpu_s() - busy) / (time.monotonic() - began) / CORES
        ends = window()
        assert ends is not None
        return Company({name: mean_s(those) for name, those in ends.items()}, share)

    def _until(self, true: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + _WAIT_S
        while not true():
            if time.monotonic() > deadline:
                raise LabError(f"waited {_WAIT_S:g} s: {what}")
            time.sleep(_LOOK_S)
            for job in self._jobs.values():
                job.look()


def mean_s(ends: Sequence[float]) -> float:
    """Of the iterations between these moments."""
    return (ends[-1] - ends[0]) / (len(ends) - 1)


@contextmanager
def shared_hosts(
    bed: LoopbackBed, system: System, configs: Mapping[str, Config]
) -> Iterator[SharedHosts]:
    """Jobs by name; none has begun an iteration yet."""
    jobs: dict[str, Trainee] = {}
    with tempfile.TemporaryDirectory() as folder:
        try:
            for number, (name, config) in enumerate(configs.items()):
                jobs[name] = Trainee(bed, system, config, PORT + number, Path(folder))
            hosts = SharedHosts(jobs)
            hosts.wait()
            yield hosts
        finally:
            for job in jobs.values():
                job.job.end()
