"""How long do other systems that go on without a lost worker stand still, beside ours?

As lost_nodes: four workers on four hosts, one of them killed at a random moment, each time in a job
of its own, and all systems by turns. torchft and Horovod Elastic need no servers; torchft's
lighthouse and horovodrun have the scheduler's host. `make bench-install-peers` installs them.

torchft throws a step away when a worker is lost in it, and Horovod does it again: of them, a step
counts once it is kept. With both, a worker that does not receive from the lost one itself notices
nothing until its sum has taken too long, so how long that is decides. Where Horovod loses another
worker by that, it is counted, and the others are measured. As it comes, torchft waits no longer
than that for all to come together again, and may lose others by it: then nothing is measured.

With --again, the lost worker is started again at once (by horovodrun, once its host may be used).
All have as much state as gradients.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pslite_ext.command_line import Parser
from pslite_ext.launch.join import SERVES
from scripts.lab.bed.bed import Bed
from scripts.lab.bed.namespaces import LabError, privilege_missing
from scripts.lab.joining_worker import SCRIPT
from scripts.lab.lost_nodes import STEPS, TENSORS, WORKERS, WORKLOADS, Job, Loss, lose, measured
from scripts.lab.program import run_program
from scripts.lab.systems.job import NAMED, ROOT, environment, place
from scripts.lab.systems.peers import TORCHFT, PeerMissing, peer_python
from scripts.lab.workloads.timed_steps import BEGUN_AFTER

HOSTS = [f"host{rank}" for rank in range(WORKERS)]
FIRST, VICTIM = "scheduler", 1
_LIGHTHOUSE_PORT = 29510
_MORE_STEPS, _STEPS_AGAIN = 15, 40  # while not all torchft's workers are in; with --again
_TIMEOUT_S = 300.0
_HEAD = (
    "| system | times | a step (median) | from the kill to the end of the next step that counts,"
    " median and at most | the longest step after it | steps thrown away or done again"
    " | workers lost with it |"
)
_HEAD_AGAIN = (
    "| system | times | from ready to the end of the first step with it, median and at most"
    " | the others stood still, the loss included |"
)
_Measured = TypeVar("_Measured")
# What horovodrun takes for ssh: the host is a namespace here.
_SSH = """#!/bin/sh
while [ "$1" = -o ]; do shift 2; done
host=$1
shift
space=$(sed -n "s/^$host //p" "$(dirname "$0")/namespaces")
exec ip netns exec "$space" unshare --uts sh -c 'hostname "$0" && eval "$1"' "$host" "$*"
"""
_OF_RANK = re.compile(r"^\[\d+\]<std(out|err)>:")  # what horovodrun writes before a worker's line
_ENDED = re.compile(r"^Process \d+ exit with status code \d+\.")  # what it says of a worker itself


@dataclass(frozen=True)
class Patience:
    sum_s: int  # how long a sum may take
    heartbeat_ms: int = 0  # without one, a worker is lost; torchft alone


# The shortest that can be set without steps of a third of a second coming near; and their defaults.
TORCHFTS = {"torchft": Patience(1, 500), "torchft as it comes": Patience(60, 5000)}
HOROVODS = {"horovod": Patience(1), "horovod as it comes": Patience(30)}
OURS = {"mercury": "torch", "mercury under MXNet": "mxnet"}
SYSTEMS = (*OURS, *TORCHFTS, *HOROVODS)
AT_THEIR_BEST = tuple(system for system in SYSTEMS if "as it comes" not in system)


@dataclass(frozen=True)
class Elsewhere:
    loss: Loss
    discarded: int = 0  # steps, by the worker that threw most away
    more_lost: int = 0  # workers


@dataclass(frozen=True)
class Returned:
    waits_s: float  # from when it is ready until the end of the first step that it is in
    stood_s: float  # what the others' steps were longer, all together, those of the loss, too


class Running:
    """The processes of a job of others, and what they have said."""

    def __init__(self, bed: Bed) -> None:
        self.bed = bed
        self.lines: dict[str, list[str]] = {}
        self.processes: list[Any] = []

    def start(self, host: str, command: Sequence[str], env: dict[str, str], name: str = "") -> Any:
        """On a host whose name is its address, which the others can resolve."""
        lines = self.lines[name or host] = []
        base = {k: v for k, v in os.environ.items() if not k.startswith(("DMLC_", "MERCURY_"))}
        base |= {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", "PYTHONPATH": str(ROOT)}
        named = [*NAMED, self.bed.address(host), *command]
        self.processes.append(
            self.bed.start(host, named, base | env, lambda line: lines.append(plain(line)))
        )
        return self.processes[-1]

    def told(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.said() if line.startswith("{")]

    def said(self) -> list[str]:
        return [line for lines in self.lines.values() for line in list(lines)]

    def ended_workers(self) -> int:
        """Workers, by horovodrun's word."""
        return sum(_ENDED.match(line) is not None for line in self.said())

    def wait_for(self, what: str, done: Callable[[], bool], killed: int = 0) -> None:
        deadline = time.monotonic() + _TIMEOUT_S
        while not done():
            ended = sum(process.poll() is not None for process in self.processes)
            if ended > killed or time.monotonic() > deadline:
                last = "\n".join(line for its in self.lines.values() for line in its[-30:])
                raise LabError(f"{what}:\n{last}")
            time.sleep(0.01)


def plain(line: str) -> str:
    return _OF_RANK.sub("", line)


def _words(job: Job, again: bool) -> list[str]:
    steps = STEPS + _MORE_STEPS + again * _STEPS_AGAIN
    return [str(steps), str(int(job.megabytes * 1e6 / 4 / TENSORS)), str(TENSORS)]


def start_torchft(
    running: Running, job: Job, again: bool, patience: Patience, folder: Path
) -> Callable[[], None]:
    """Starts it; what kills the victim, and starts it again."""
    python = peer_python(TORCHFT)
    lighthouse = [str(Path(python).with_name("torchft_lighthouse")), "--min_replicas", "1"]
    lighthouse += ["--bind", f"[::]:{_LIGHTHOUSE_PORT}", "--quorum_tick_ms", "10"]
    running.start(FIRST, [*lighthouse, "--heartbeat_timeout_ms", str(patience.heartbeat_ms)], {})
    at = f"http://{running.bed.address(FIRST)}:{_LIGHTHOUSE_PORT}"
    go = folder / "go"

    def start(rank: int) -> Any:
        its = [str(WORKERS), str(rank), running.bed.address(HOSTS[rank]), at]
        words = [*_words(job, again), *its, str(patience.sum_s), str(go)]
        env = {"GLOO_SOCKET_IFNAME": running.bed.device}
        command = [python, str(WORKLOADS / "torchft_steps.py"), *words]
        return running.start(HOSTS[rank], command, env)

    workers = [start(rank) for rank in range(WORKERS)]
    running.wait_for("torchft does not start", lambda: running.said().count("ready") == WORKERS)
    go.touch()

    def strike() -> None:
        workers[VICTIM].send_signal(signal.SIGKILL)
        if again:
            start(VICTIM)

    return strike


def start_horovod(
    running: Running, job: Job, again: bool, patience: Patience, folder: Path
) -> Callable[[], None]:
    """As start_torchft."""
    python, bed = peer_python("horovod"), running.bed
    addresses = [bed.address(host) for host in HOSTS]
    spaces = [f"{bed.address(host)} {bed.namespace(host)}\n" for host in HOSTS]
    (folder / "namespaces").write_text("".join(spaces))
    lines = "".join(f"echo {address}:1\n" for address in addresses)
    for name, text in (("ssh", _SSH), ("hosts", f"#!/bin/sh\n{lines}")):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    command = [python, "-m", "horovod.runner.launch", "--gloo", "--network-interfaces", bed.device]
    command += ["-np", str(WORKERS), "--min-np", "1", "--max-np", str(WORKERS)]
    command += ["--gloo-timeout-seconds", str(patience.sum_s)]
    command += ["--host-discovery-script", str(folder / "hosts")]
    if again:
        command += ["--blacklist-cooldown-range", "1", "2"]
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    script = [python, str(WORKLOADS / "horovod_steps.py"), *_words(job, again)]
    running.start(FIRST, [*command, *script], {"PATH": path})

    def strike() -> None:
        of = f"process {addresses[VICTIM]} "
        (process,) = (int(line[len(of) :]) for line in running.said() if line.startswith(of))
        os.kill(process, signal.SIGKILL)

    return strike


def lose_elsewhere(
    system: str, job: Job, draw: random.Random, again: bool = False
) -> tuple[list[dict[str, Any]], float, int]:
    """What those that are there in the end have said; when one was killed; how many more ended."""
    with Bed([FIRST, *HOSTS], job.rate) as bed, tempfile.TemporaryDirectory() as folder:
        running = Running(bed)
        start = start_torchft if system in TORCHFTS else start_horovod
        patience = {**TORCHFTS, **HOROVODS}[system]
        strike = start(running, job, again, patience, Path(folder))
        running.wait_for(
            f"{system} does not begin", lambda: running.said().count("begun") == WORKERS
        )
        time.sleep(draw.uniform(0, 1))
        killed_at = time.monotonic()
        strike()
        running.wait_for(
            f"{system} does not go on",
            lambda: (
                len(running.told()) + (0 if again else max(1, running.ended_workers())) == WORKERS
            ),
            killed=1,
        )
        told, ended = running.told(), running.ended_workers()
    if len({each["digest"] for each in told}) != 1:
        raise LabError(f"{system}: not all workers have the same weights")
    return told, killed_at, max(0, ended - 1)


def lost(system: str, job: Job, draw: random.Random) -> Elsewhere:
    if system in OURS:
        return Elsewhere(lose("a worker", Job(job.rate, job.megabytes, OURS[system]), draw))
    told, killed_at, more = lose_elsewhere(system, job, draw)
    loss = measured([each["ends"] for each in told], killed_at)
    return Elsewhere(loss, max(each["discarded"] for each in told), more)


def returned(system: str, job: Job, draw: random.Random) -> Returned:
    if system in OURS:
        return return_ours(job, draw)
    told, killed_at, _ = lose_elsewhere(system, job, draw, again=True)
    new = max(told, key=lambda each: float(each["ready"]))
    others = [each["ends"] for each in told if each is not new]
    return Returned(new["ends"][0] - new["ready"], max(stood_s(its, killed_at) for its in others))


def return_ours(job: Job, draw: random.Random) -> Returned:
    at = {f"{role}{rank}": host for rank, host in enumerate(HOSTS) for role in ("server", "worker")}
    with Bed([FIRST, *HOSTS], job.rate) as bed, tempfile.TemporaryDirectory() as folder:
        running = Running(bed)
        base = environment(bed, WORKERS, WORKERS, 0)
        base |= {"DMLC_PS_VAN_TYPE": "mercury", "MERCURY_MIN_WORKERS": "1"}
        trains = [str(SCRIPT), folder, str(job.megabytes), str(job.megabytes), "0"]

        def start(name: str, host: str) -> Any:
            words = trains if name.startswith("worker") else ["-c", SERVES]
            env = base | place(bed, name, host)
            return running.start(host, [sys.executable, *words], env, name)

        def steps() -> int:
            return sum(line.startswith("step ") for line in running.lines["worker0"])

        processes = {name: start(name, host) for name, host in {FIRST: FIRST, **at}.items()}
        running.wait_for("mercury does not begin", lambda: steps() >= BEGUN_AFTER)
        time.sleep(draw.uniform(0, 1))
        victim = f"worker{VICTIM}"
        killed_at = time.monotonic()
        processes[victim].send_signal(signal.SIGKILL)
        start(victim, at[victim])
        running.wait_for("it does not come back", lambda: "in" in running.lines[victim], killed=1)
        part, last = Path(folder) / "part", Path(folder) / "last"
        part.write_text(str(steps() + STEPS))
        part.rename(last)
        everybody = len(running.processes)
        running.wait_for("it does not end", lambda: len(running.told()) == WORKERS, everybody)
        told = running.told()
    if len({each["digest"] for each in told}) != 1:
        raise LabError("mercury: not all workers have the same state")
    (new,) = (each for each in told if each["began"])
    others = [each["ends"] for each in told if each is not new]
    waits_s = new["ends"][1] - new["ready"]
    return Returned(waits_s, max(stood_s(ends, killed_at) for ends in others))


def stood_s(ends: Sequence[float], killed_at: float) -> float:
    """By how much the steps after it were longer than the median of those before."""
    steps = list(zip(ends, ends[1:]))
    usual = statistics.median(end - begin for begin, end in steps if end < killed_at)
    return sum(max(0.0, end - begin - usual) for begin, end in steps if end >= killed_at)


def main(argv: Sequence[str]) -> int:
    parser = Parser(prog="python -m scripts.lab.lost_elsewhere", description=__doc__)
    add = parser.add_argument
    add("--times", type=int, default=5, help="each system (default: %(default)s)")
    add("--rate", type=float, default=1e9, help="of each host, in bit/s (default: %(default)g)")
    add("--megabytes", type=float, default=24, help="of gradients (default: %(default)g)")
    add("--seed", type=int, default=1)
    help_ = ", ".join(SYSTEMS)
    add("--systems", nargs="+", choices=SYSTEMS, default=AT_THEIR_BEST, metavar="NAME", help=help_)
    add("--again", action="store_true", help="the lost worker is started again")
    asked = parser.parse_args(argv)
    if asked.times < 1 or asked.rate <= 0 or asked.megabytes <= 0:
        parser.error("at least one time, and a rate and a size above 0")
    draw = random.Random(asked.seed)
    job = Job(asked.rate, asked.megabytes)
    try:
        if (reason := privilege_missing()) is not None:
            raise LabError(reason)
        if asked.again:
            _by_turns(asked, lambda system: returned(system, job, draw), row_again, _HEAD_AGAIN)
        else:
            _by_turns(asked, lambda system: lost(system, job, draw), row, _HEAD)
    except (LabError, PeerMissing) as error:
        print(f"lost_elsewhere: {error}", file=sys.stderr)
        return 1
    return 0


def _by_turns(
    asked: Any,
    measure: Callable[[str], _Measured],
    write: Callable[[str, Sequence[_Measured]], str],
    head: str,
) -> None:
    found: dict[str, list[_Measured]] = {system: [] for system in asked.systems}
    for _ in range(asked.times):
        for system, its in found.items():
            its.append(measure(system))
            print(f"{system}: {its[-1]}", file=sys.stderr, flush=True)
    print(head)
    print("|---" * (head.count("|") - 1) + "|")
    for system, its in found.items():
        print(write(system, its))


def row(system: str, its: Sequence[Elsewhere]) -> str:
    losses = [each.loss for each in its]
    nexts = [loss.next_s for loss in losses]
    longest = max(loss.longest_s for loss in losses)
    return (
        f"| {system} | {len(its)} | {statistics.median(loss.median_s for loss in losses):.2f} s "
        f"| {statistics.median(nexts):.2f} and {max(nexts):.2f} s | {longest:.2f} s "
        f"| {sum(each.discarded for each in its)} | {sum(each.more_lost for each in its)} |"
    )


def row_again(system: str, its: Sequence[Returned]) -> str:
    waits, stood = [each.waits_s for each in its], [each.stood_s for each in its]
    return (
        f"| {system} | {len(its)} | {statistics.median(waits):.2f} and {max(waits):.2f} s "
        f"| {statistics.median(stood):.2f} and {max(stood):.2f} s |"
    )


if __name__ == "__main__":
    run_program("lost_elsewhere", main)
