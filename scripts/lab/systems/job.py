"""One measured job on a bed: every process on a host of its own, followed until all have ended."""

from __future__ import annotations

import json
import os
import queue
import secrets
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from pslite_ext.launch.output import LINE_BYTES_MAX
from pslite_ext.launch.supervise import Child
from scripts.lab.bed.bed import LoopbackBed
from scripts.lab.bed.namespaces import LabError
from scripts.lab.systems.system import System
from scripts.lab.systems.watch import Links, Watch
from scripts.lab.workloads.job_config import Config
from scripts.lab.workloads.measurement import DEVICE, MARK

ROOT = Path(__file__).resolve().parents[3]
# For `python -c`: what importing a framework does in servers and the scheduler.
LOG_LINES = 12  # kept of each process, for the report of a failure
PORT = 9091
_TICK_S = 0.2
_LEAVE_S = 60.0  # for the others to end after the first has failed, or after all results are in
NAMED = ("unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"')
CORES = len(os.sched_getaffinity(0))
_CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


class JobFailed(RuntimeError):
    """The job did not end well; the text says who, and their last lines."""


@dataclass
class Process:
    role: str
    host: str  # its name, and its host's unless it lives beside another
    at: str = ""  # its host
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=LOG_LINES))
    child: Child = field(init=False)
    begun: str = ""  # of what it says: a line that is so long that it comes in pieces

    def hear(self, line: str) -> dict[str, Any] | None:
        """What it says by a line, if that is no other output."""
        whole, self.begun = self.begun + line, ""
        if whole.startswith(MARK):
            try:
                event: dict[str, Any] = json.loads(whole[len(MARK) :])
                return event
            except ValueError:  # or two processes wrote at once
                if len(line) >= LINE_BYTES_MAX:
                    self.begun = whole
                    return None
        self.lines.append(line)
        return None

    def cpu_s(self) -> float:
        """Processor time so far; 0 when it has ended."""
        try:
            stat = Path(f"/proc/{self.child.pid}/stat").read_text()
        except OSError:
            return 0.0
        fields = stat[stat.rindex(")") + 2 :].split()
        return (int(fields[11]) + int(fields[12])) / _CLOCK_TICKS

    def memory_kb(self) -> dict[str, int]:
        """Resident memory, now and at most."""
        try:
            status = Path(f"/proc/{self.child.pid}/status").read_text()
        except OSError:
            return {}
        found = dict(line.split(":", 1) for line in status.splitlines() if line.startswith("Vm"))
        return {
            short: int(found[name].split()[0])
            for short, name in (("now", "VmRSS"), ("most", "VmHWM"))
            if name in found
        }


def machine_cpu_s(table: str | None = None) -> float:
    """Since it was started, but for what it was idle."""
    text = Path("/proc/stat").read_text() if table is None else table
    user, nice, system, _idle, _waits, interrupts, soft = map(int, text.split()[1:8])
    return (user + nice + system + interrupts + soft) / _CLOCK_TICKS


@dataclass
class Sample:
    """Of all processes, when worker 0 said something."""

    t: float
    cpu_s: dict[str, float]
    memory_kb: dict[str, dict[str, int]]
    machine_cpu_s: float  # of all processes of the machine, and of its kernel


@dataclass
class Outcome:
    """Each worker's events by name, and samples of all processes by worker 0's event."""

    workers: list[dict[str, dict[str, Any]]]
    samples: dict[str, Sample]
    began: float = 0.0
    links: Links | None = None  # between worker 0's `begin` and `end`, if somebody watched

    @property
    def startup_s(self) -> float:
        """From the first process's start until the slowest worker could begin its first step."""
        return max(float(w["started"]["t"]) for w in self.workers) - self.began

    @property
    def results(self) -> list[dict[str, Any]]:
        return [w["result"] for w in self.workers]

    @property
    def rounds_s(self) -> list[float]:
        """A round is over when the slowest worker has it."""
        return [max(times) for times in zip(*(r["times_s"] for r in self.results))]

    @property
    def seconds(self) -> float:
        return max(float(w["end"]["t"] - w["begin"]["t"]) for w in self.workers)

    def worker_cpu_s(self) -> list[float]:
        return [w["end"]["cpu_s"] - w["begin"]["cpu_s"] for w in self.workers]

    def cpu_s(self, role: str) -> list[float]:
        """Of a role's processes, between worker 0's `begin` and `end`."""
        begin, end = self.samples["begin"].cpu_s, self.samples["end"].cpu_s
        return [end[host] - begin[host] for host in end if host.startswith(role)]

    def wire_bytes(self) -> list[tuple[int, int]]:
        """Sent and received by each worker's interface between its `begin` and `end`."""
        return [
            (
                int(w["end"]["sent"] - w["begin"]["sent"]),
                int(w["end"]["received"] - w["begin"]["received"]),
            )
            for w in self.workers
        ]

    def throughput(self, zero: float | None = None) -> list[tuple[float, float, float]]:
        """Of worker 0: seconds since its `begin`, or `zero` on the clock if that is later; bits
        sent and received per second since the point before."""
        series, worker = self.results[0].get("series", []), self.workers[0]
        begin, end = max(worker["begin"]["t"], zero or 0.0), worker["end"]["t"]
        return [
            (b[0] - begin, 8 * (b[1] - a[1]) / (b[0] - a[0]), 8 * (b[2] - a[2]) / (b[0] - a[0]))
            for a, b in zip(series, series[1:])
            if begin <= b[0] <= end
        ]

    def blocks(self) -> list[tuple[float, float, float]]:
        """Prophet's on worker 0: the clock, the rate they are made for, the mean size since last.

        Moments without a block are left out.
        """
        series = self.results[0].get("blocks", [])
        return [
            (b[0], b[1], (b[3] - a[3]) / (b[2] - a[2]))
            for a, b in zip(series, series[1:])
            if b[2] > a[2]
        ]

    def peak_kb(self, role: str) -> int:
        """Of the role's process that had most; 0 if there was none."""
        if role == "worker":  # by its own word: what was started may only be its parent
            return max(int(w["end"]["peak_kb"]) for w in self.workers)
        sample = self.samples["end"].memory_kb
        return max((m.get("most", 0) for h, m in sample.items() if h.startswith(role)), default=0)


def paired(workers: int, servers: int = 1, replica: bool = False) -> dict[str, str]:
    """By process, its host: two workers to each; scheduler and server on one more; each other
    server, and a replica, on a host of its own, after those."""
    at = dict.fromkeys(("scheduler", "server0"), "scheduler")
    at |= {f"worker{i}": f"worker{i - i % 2}" for i in range(workers)}
    at |= {f"server{i}": f"server{i}" for i in range(1, servers)}
    return at | ({"replica0": "replica0"} if replica else {})


def host_names(workers: int, servers: int, beside: bool = False) -> list[str]:
    """`beside`: servers live on the workers' hosts."""
    return [
        "scheduler",
        *(f"server{i}" for i in range(0 if beside else servers)),
        *(f"worker{i}" for i in range(workers)),
    ]


def environment(bed: LoopbackBed, workers: int, servers: int, replicas: int) -> dict[str, str]:
    """Ours, but for what it says of a job, and what all processes of one on the bed are told."""
    base = {k: v for k, v in os.environ.items() if not k.startswith(("DMLC_", "MERCURY_"))}
    return {
        **base,
        "DMLC_PS_ROOT_URI": bed.address("scheduler"),
        "DMLC_PS_ROOT_PORT": str(PORT),
        "DMLC_NUM_WORKER": str(workers),
        "DMLC_NUM_SERVER": str(servers),
        "DMLC_NUM_REPLICA": str(replicas),
        "MERCURY_JOB_TOKEN": secrets.token_hex(16),
        "OMP_NUM_THREADS": "1",
        "PYTHONUNBUFFERED": "1",
        # The lab, for Pythons that have nothing of ours. It makes no MXNet ours: only the
        # patched wheel asks for mxnet_plugins.
        "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [base.get("PYTHONPATH")])]),
    }


def place(bed: LoopbackBed, name: str, host: str) -> dict[str, str]:
    """What one of them is told, by its name, such as worker3, and its host."""
    role = name.rstrip("0123456789")
    return {
        "DMLC_ROLE": role,
        "DMLC_NODE_HOST": bed.address(host),
        "DMLC_TASK_ID": name[len(role) :] or "0",
    }


class MeasuredJob:
    """`at`: each process's host, by its name; else every host has the process of its name."""

    def __init__(
        self,
        bed: LoopbackBed,
        system: System,
        config: Config,
        *,
        env: dict[str, str] | None = None,
        program: Sequence[str] | None = None,
        watch: Watch | None = None,
        at: Mapping[str, str] | None = None,
    ) -> None:
        self._bed = bed
        self._watch = watch
        self._system = system
        self._heard: queue.SimpleQueue[tuple[Process, dict[str, Any]]] = queue.SimpleQueue()
        if system.own_hosts and not bed.shaped:
            raise LabError(f"{system.name} needs hosts with names of their own, and so root")
        roles = ("scheduler", "server", "replica", "worker") if system.servers else ("worker",)
        places = dict(at or {host: host for host in bed.hosts})
        places = {name: host for name, host in places.items() if name.startswith(roles)}
        workers = [bed.address(h) for name, h in places.items() if name.startswith("worker")]
        if not system.replica:
            places.pop("replica0", None)
        self._workers = len(workers)
        servers = sum(name.startswith("server") for name in places)
        base = environment(bed, len(workers), servers, int("replica0" in places))
        base.update(
            LAB_SIZE=str(len(workers)),
            LAB_FIRST=workers[0],
            LAB_WORKERS=",".join(workers),
        )
        base[DEVICE] = bed.device
        base.update(system.env)
        base.update(env or {})
        warmup = max(config.warmup, system.warmup)
        config_text = json.dumps({**asdict(config), "store": system.store, "warmup": warmup})
        argv = list(program or [system.python, *system.program, config_text])
        self._named = system.own_hosts
        self._began = time.monotonic()
        if system.starter == "job":
            spaces = [bed.namespace(h) for name, h in places.items() if name.startswith("worker")]
            base["LAB_NAMESPACES"] = ",".join(spaces)
            places = {"worker0": places["worker0"]}
        elif system.starter == "host":
            places = {name: host for name, host in places.items() if name == host}
        self._processes = [self._start(*item, argv, base) for item in places.items()]

    def _start(self, name: str, host: str, argv: list[str], base: dict[str, str]) -> Process:
        told = place(self._bed, name, host)
        role = told["DMLC_ROLE"]
        env = {**base, **told, "LAB_RANK": told["DMLC_TASK_ID"]}
        if self._named:  # its address is a host's name, which everybody can resolve
            argv = [*NAMED, self._bed.address(host), *argv]
        process = Process(role, name, host)
        process.child = self._bed.start(host, argv, env, partial(self._listen, process))
        return process

    def _listen(self, process: Process, line: str) -> None:
        event = process.hear(line)
        if event is not None:
            self._heard.put((process, event))

    def follow(
        self, timeout_s: float, tell: Callable[[Process, dict[str, Any]], None] | None = None
    ) -> Outcome:
        """Until every process has ended; JobFailed if one ends badly or the time is up."""
        deadline = time.monotonic() + timeout_s
        outcome = Outcome([{} for _ in range(self._workers)], {}, self._began)
        try:
            while any(p.child.poll() is None for p in self._processes) or not self._heard.empty():
                try:
                    process, event = self._heard.get(timeout=_TICK_S)
                except queue.Empty:
                    pass
                else:
                    self._take(process, event, outcome)
                    if tell:
                        tell(process, event)
                    if all("result" in w for w in outcome.workers):
                        deadline = min(deadline, time.monotonic() + _LEAVE_S)
                self.check_alive()
                if time.monotonic() > deadline:
                    late = [p for p in self._processes if p.child.poll() is None]
                    raise JobFailed(self._report(f"not done in {timeout_s:.0f} s", late))
        finally:
            if self._watch is not None:
                self._watch.end()
            self.end()
        if not all("result" in w for w in outcome.workers):
            raise JobFailed(self._report("a worker gave no result", self._processes))
        if wrong := [text for r in outcome.results for text in r.get("wrong", ())]:
            raise JobFailed(f"{self._system.name}: wrong sums: {'; '.join(wrong[:3])}")
        return outcome

    def check_alive(self) -> None:
        """JobFailed if one of its processes has ended badly."""
        failed = [p for p in self._processes if p.child.poll() not in (None, 0)]
        if failed:
            raise JobFailed(self._report(f"{failed[0].host} ended", failed))

    def heard(self) -> Iterator[tuple[Process, dict[str, Any]]]:
        """What its processes have said since it was last asked; of a job that nobody follows."""
        while not self._heard.empty():
            yield self._heard.get()

    def end(self) -> None:
        self._bed.processes.end([p.child for p in self._processes])

    def _take(self, process: Process, event: dict[str, Any], outcome: Outcome) -> None:
        rank = int(event.get("rank", process.host[len(process.role) :] or 0))
        name = str(event["event"])
        if name == "progress":
            name = f"progress {event['rounds']}"
        outcome.workers[rank][name] = event
        if rank == 0:
            # First: a look at the links takes a while, and is not what is measured.
            outcome.samples[name] = Sample(
                time.monotonic(),
                {p.host: p.cpu_s() for p in self._processes},
                {p.host: p.memory_kb() for p in self._processes},
                machine_cpu_s(),
            )
            if self._watch is not None and name == "begin":
                pids = {p.at: p.child.pid for p in self._processes if p.role != "scheduler"}
                self._watch.begin(pids)
            elif self._watch is not None and name == "end":
                outcome.links = self._watch.end()

    def _report(self, what: str, processes: Sequence[Process]) -> str:
        lines = [f"{self._system.name}: {what}"]
        scheduler = [p for p in self._processes if p.role == "scheduler" and p.lines]
        for process in (*processes[:3], *(s for s in scheduler if s not in processes[:3])):
            lines.append(f"--- {process.host}, exit code {process.child.poll()}:")
            lines += list(process.lines)
        return "\n".join(lines)


def run_job(
    bed: LoopbackBed,
    system: System,
    config: Config,
    *,
    timeout_s: float = 300,
    env: dict[str, str] | None = None,
    tell: Callable[[Process, dict[str, Any]], None] | None = None,
    watch: Watch | None = None,
    at: Mapping[str, str] | None = None,
) -> Outcome:
    job = MeasuredJob(bed, system, config, env=env, watch=watch, at=at)
    return job.follow(timeout_s, tell)
