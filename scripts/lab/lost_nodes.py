"""How long does training stand still when a node is killed, in a job that goes on without it?

Four workers, on four hosts or fewer, with a server on each; the scheduler on one of its own. Each
kind of node is killed at a random moment, several times, each time in a job of its own. Workers run
MXNet, or PyTorch, where `make bench-install-peers PEERS=torch-ddp` has installed it.
"""

from __future__ import annotations

import json
import queue
import random
import signal
import statistics
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from pslite_ext.command_line import Parser
from pslite_ext.launch.join import SERVES
from scripts.lab.bed.bed import Bed
from scripts.lab.bed.namespaces import LabError, privilege_missing
from scripts.lab.program import run_program
from scripts.lab.systems.job import ROOT, environment, place
from scripts.lab.systems.peers import PeerMissing, peer_python

WORKLOADS = ROOT / "scripts" / "lab" / "workloads"
SCRIPTS = {"mxnet": "steps_in_time.py", "torch": "torch_steps_in_time.py"}
WORKERS = 4
KINDS = ("a worker", "worker 0", "a server", "a host", "the scheduler")
STEPS, TENSORS = 25, 12
_TIMEOUT_S = 300.0


@dataclass(frozen=True)
class Job:
    rate: float  # of each host, in bit/s
    megabytes: float  # of gradients
    framework: str = "mxnet"
    workers_a_host: int = 1

    @property
    def servers(self) -> int:
        return WORKERS // self.workers_a_host

    def hosts(self) -> dict[str, str]:
        """Of each process, its host."""
        at = {f"worker{rank}": f"host{rank // self.workers_a_host}" for rank in range(WORKERS)}
        at |= {f"server{rank}": f"host{rank}" for rank in range(self.servers)}
        return {"scheduler": "scheduler", **at}

    def victims(self, kind: str) -> list[str]:
        """Never worker 0, unless it is to be that."""
        last = f"host{self.servers - 1}"
        return {
            "a worker": ["worker1"],
            "worker 0": ["worker0"],
            "a server": ["server1"],
            "a host": [name for name, host in self.hosts().items() if host == last],
            "the scheduler": ["scheduler"],
        }[kind]

    def python(self) -> str:
        return peer_python("torch-ddp") if self.framework == "torch" else sys.executable


@dataclass(frozen=True)
class Loss:
    median_s: float  # a step, before it
    longest_s: float  # of those after it, the one under way among them
    next_s: float  # from the kill to the end of the step under way


def lose(kind: str, job: Job, draw: random.Random) -> Loss:
    hosts, victims = job.hosts(), job.victims(kind)
    words = [str(WORKLOADS / SCRIPTS[job.framework]), str(STEPS)]
    words += [str(int(job.megabytes * 1e6 / 4 / TENSORS)), str(TENSORS)]
    lines: dict[str, list[str]] = {name: [] for name in hosts}
    with Bed(list(dict.fromkeys(hosts.values())), job.rate) as bed:
        base = environment(bed, WORKERS, job.servers, 0)
        base |= {"DMLC_PS_VAN_TYPE": "mercury", "MERCURY_MIN_WORKERS": "1"}
        base |= {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
        processes = {}
        for name, host in hosts.items():
            command = [sys.executable, "-c", SERVES]
            if name.startswith("worker"):
                command = [job.python(), *words]
            env = base | place(bed, name, host)
            processes[name] = bed.start(host, command, env, lines[name].append)
        deadline = time.monotonic() + _TIMEOUT_S
        workers = [name for name in processes if name.startswith("worker")]
        while not all("begun" in lines[name] for name in workers):
            if time.monotonic() > deadline:
                raise LabError("the job does not begin")
            time.sleep(0.01)
        time.sleep(draw.uniform(0, 1))
        killed_at = time.monotonic()
        for name in victims:
            processes[name].send_signal(signal.SIGKILL)
        with suppress(queue.Empty):
            for _ in processes:
                bed.processes.ended.get(timeout=max(0.0, deadline - time.monotonic()))
    left = [name for name in processes if name not in victims]
    if wrong := [name for name in left if processes[name].returncode != 0]:
        last = "\n".join(lines[wrong[0]][-30:])
        raise LabError(f"{wrong[0]} did not end as it should:\n{last}")
    told = [
        json.loads(line)
        for name in left
        if name.startswith("worker")
        for line in lines[name]
        if line.startswith("{")
    ]
    if len({each["digest"] for each in told}) != 1:
        raise LabError("not all workers were given the same sums")
    return measured([each["ends"] for each in told], killed_at)


def measured(all_ends: Sequence[Sequence[float]], killed_at: float) -> Loss:
    """`all_ends`: by worker, the moments at which steps ended."""
    before, after, nexts = [], [], []
    for ends in all_ends:
        steps = list(zip(ends, ends[1:]))
        before += [end - begin for begin, end in steps[1:] if end < killed_at]
        after += [end - begin for begin, end in steps if end >= killed_at]
        nexts.append(min(end for _, end in steps if end >= killed_at) - killed_at)
    return Loss(statistics.median(before), max(after), max(nexts))


def main(argv: Sequence[str]) -> int:
    parser = Parser(prog="python -m scripts.lab.lost_nodes", description=__doc__)
    add = parser.add_argument
    add("--times", type=int, default=5, help="each kind (default: %(default)s)")
    add("--rate", type=float, default=1e9, help="of each host, in bit/s (default: %(default)g)")
    add("--megabytes", type=float, default=24, help="of gradients (default: %(default)g)")
    add("--seed", type=int, default=1)
    add("--only", nargs="+", choices=KINDS, default=KINDS, metavar="KIND", help=", ".join(KINDS))
    add("--framework", choices=SCRIPTS, default="mxnet", help="(default: %(default)s)")
    add("--workers-a-host", type=int, choices=(1, 2), default=1, help="(default: %(default)s)")
    asked = parser.parse_args(argv)
    if asked.times < 1 or asked.rate <= 0 or asked.megabytes <= 0:
        parser.error("at least one time, and a rate and a size above 0")
    draw = random.Random(asked.seed)
    job = Job(asked.rate, asked.megabytes, asked.framework, asked.workers_a_host)
    try:
        if (reason := privilege_missing()) is not None:
            raise LabError(reason)
        print("| killed | times | a step (median) | to the end of the step under way, at most |")
        print("|---|---|---|---|")
        for kind in asked.only:
            of_kind = [lose(kind, job, draw) for _ in range(asked.times)]
            median = statistics.median(loss.median_s for loss in of_kind)
            most = max(loss.next_s for loss in of_kind)
            longest = max(loss.longest_s / loss.median_s for loss in of_kind)
            print(
                f"| {kind} | {asked.times} | {median:.2f} s "
                f"| {most:.2f} s; no step longer than {longest:.1f} of these |",
                flush=True,
            )
    except (LabError, PeerMissing) as error:
        print(f"lost_nodes: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    run_program("lost_nodes", main)
