"""One long job, in which something happens every few seconds: workers are killed, stopped, hang,
leave and join, those that let others in are killed meanwhile, and now and then a server is, or the
scheduler, for each of which another comes. As root, each node has a host of its own, which may be
cut off, or slow for a while.

All that are there in the end must have the same state, step by step the same sums, and nobody else
may have ended. What is lost of the time is said, by workers' seconds, and what it is lost to.
"""

from __future__ import annotations

import json
import random
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from pslite_ext.command_line import Parser
from pslite_ext.launch.join import JOINS, SERVES
from pslite_ext.launch.supervise import Child
from scripts.lab.bed.bed import Bed, LoopbackBed
from scripts.lab.bed.namespaces import LabError, privilege_missing
from scripts.lab.program import run_program
from scripts.lab.systems.job import ROOT, environment, place

SCRIPT = ROOT / "scripts" / "lab" / "workloads" / "steps_and_newcomers.py"
WORKERS, SERVERS, PLACES = 4, 4, 7
STATE_MB, GRADIENTS_MB, COMPUTES_S = 5.0, 2.0, 0.05
SILENCE_S, STALL_S, PAUSE_S = 2.0, 2, 1.5
SLOW_S, SLOW_RATE = 3.0, 100e6
HANGS_S = 60.0  # one that is stopped for good: then it makes room
WORKERS_HOSTS = [f"host{n}" for n in range(PLACES + 8)]  # those that hang are there still
STEPS_AFTER = 40
SIGNALS = {
    "kill": signal.SIGKILL,
    "crash": signal.SIGSEGV,
    "hang": signal.SIGSTOP,
    "hold the GIL": signal.SIGUSR1,  # the script's: for longer than anybody's patience
    "leave": signal.SIGTERM,
}
WEIGHTS = {
    "join": 6,
    "kill": 2,
    "crash": 1,
    "stop": 2,
    "hang": 1,
    "hold the GIL": 1,
    "cut off": 1,
    "slow down": 1,
    "leave": 1,
    "kill who lets in": 2,
    "kill a newcomer": 1,
    "kill a server": 2,
    "kill the scheduler": 1,
}
_TIMEOUT_S = 90.0


class End(NamedTuple):
    """Of a step, and of how many workers its sum is."""

    moment: float
    workers: int


@dataclass
class Node:
    name: str
    child: Child
    host: str
    lines: list[str] = field(default_factory=list)
    struck: str = ""  # what has been done to it that ends it
    may_end: bool = False  # it may be lost with another

    @property
    def is_there(self) -> bool:
        return not self.struck and self.child.poll() is None


@dataclass
class Server(Node):
    late: bool = False

    @property
    def is_in(self) -> bool:
        is_in = not self.late or any(f"{self.name} is in" in line for line in self.lines)
        return is_in and self.is_there


class Worker(Node):
    @property
    def is_in(self) -> bool:
        return "in" in self.lines and self.is_there

    @property
    def rank(self) -> int:
        return next((int(line[5:]) for line in self.lines if line.startswith("rank ")), -1)


class Chaos:
    def __init__(
        self, bed: LoopbackBed, folder: Path, seed: int, only: Collection[str] = ()
    ) -> None:
        self._bed, self._folder = bed, folder
        self._weights = {what: n for what, n in WEIGHTS.items() if not only or what in only}
        self._draw = random.Random(seed)
        base = environment(bed, WORKERS, SERVERS, 0)
        self._base = base | {
            "DMLC_PS_VAN_TYPE": "mercury",
            "MERCURY_MIN_WORKERS": "1",
            "MERCURY_MAX_WORKERS": str(PLACES),
            "MERCURY_HEARTBEAT_TIMEOUT_MS": str(int(SILENCE_S * 1000)),
            "MERCURY_STALL_TIMEOUT_S": str(STALL_S),
            "MERCURY_JOURNAL": str(folder / "journal"),
        }
        self._lines: list[str] = []  # the scheduler's
        self.workers: list[Worker] = []
        self._servers: list[Server] = []
        self.scheduler = self._schedules()
        for rank in range(SERVERS):
            self._serve(rank)
        for rank in range(WORKERS):
            self._train(f"worker{rank}", {})
        self._later: list[tuple[float, Callable[[], object]]] = []  # what, and when
        self.happened: list[tuple[float, str]] = []  # by the clock that steps are said by

    def _schedules(self) -> Child:
        env = self._base | place(self._bed, "scheduler", "scheduler")
        return self._bed.start("scheduler", [sys.executable, "-c", SERVES], env, self._lines.append)

    def _serve(self, rank: int, late: bool = False) -> None:
        lines: list[str] = []
        host = f"server{rank}"
        env = self._base | place(self._bed, host, host)
        child = self._bed.start(host, [sys.executable, "-c", SERVES], env, lines.append)
        self._servers.append(Server(f"server {rank}", child, host, lines, late=late))

    def _train(self, name: str, more: dict[str, str]) -> Worker:
        lines: list[str] = []
        used = {worker.host for worker in self.workers if worker.child.poll() is None}
        host = next(host for host in WORKERS_HOSTS if host not in used)
        words = [str(SCRIPT), str(self._folder), str(STATE_MB), str(GRADIENTS_MB), str(COMPUTES_S)]
        env = self._base | place(self._bed, name, host) | more
        child = self._bed.start(host, [sys.executable, *words], env, lines.append)
        self.workers.append(Worker(name, child, host, lines))
        return self.workers[-1]

    def there(self) -> list[Worker]:
        return [worker for worker in self.workers if worker.is_in]

    def _newcomers(self) -> list[Worker]:
        return [
            worker
            for worker in self.workers
            if "in" not in worker.lines and not worker.struck and worker.child.poll() is None
        ]

    def steps(self) -> int:
        last = [line for worker in self.workers for line in worker.lines[-3:]]
        return max((int(line[5:]) for line in last if line.startswith("step ")), default=0)

    def done(self) -> dict[str, int]:
        """How often what has happened."""
        return dict(Counter(what for _, what in self.happened))

    def ends(self) -> list[End]:
        """Of all steps, in order: when somebody had done it first."""
        ended: dict[int, End] = {}
        for worker in self.workers:
            for line in worker.lines:
                if line.startswith("at "):
                    _, step, moment, _, workers = line.split()
                    end = End(float(moment), int(workers))
                    ended[int(step)] = min(end, ended.get(int(step), end))
        return [ended[step] for step in sorted(ended)]

    def wait_for(self, what: str, done: Callable[[], bool]) -> None:
        until = time.monotonic() + _TIMEOUT_S
        while not done():
            self._do_what_is_due()
            self._check_alive()
            if time.monotonic() > until:
                raise LabError(f"{what}\n{self.report()}")
            time.sleep(0.02)

    def _check_alive(self) -> None:
        for node in [*self.workers, *self._servers]:
            code = node.child.poll()
            if code in (None, 0) or node.struck or node.may_end:
                continue
            if not any("start it again" in line for line in node.lines):
                raise LabError(f"{node.name} ended with {code}\n{self.report()}")
            node.may_end = True  # lost with who let it in
            if isinstance(node, Server):
                self._serve(int(node.name[-1]), late=True)
        if self.scheduler.poll() not in (None, 0):
            raise LabError(f"the scheduler has ended\n{self.report()}")

    def report(self, of: Node | None = None) -> str:
        lines = [f"-- events: {self.done()}", "-- scheduler", *self._lines[-30:]]
        for node in [of] if of is not None else [*self._servers, *self.workers]:
            lines += [f"-- {node.name} {node.struck or node.child.poll()}", *node.lines[-25:]]
        return "\n".join(lines)

    # --- what happens -----------------------------------------------------------------------------

    def happens(self, within_s: float) -> None:
        """Something; whatever it was, training goes on."""
        until, steps = time.monotonic() + within_s, self.steps()
        few = len(self.there()) + len(self._newcomers()) < 3
        what = "join" if few else self._draw.choices([*self._weights], [*self._weights.values()])[0]
        began = time.monotonic()
        if self._do(what):
            self.happened.append((began, what))
        self.wait_for("nothing goes on", lambda: self.steps() > steps + 1)
        self.wait_for("time stands still", lambda: time.monotonic() >= until)

    def _do(self, what: str) -> bool:
        there = self.there()
        if what == "join":
            full = len(there) + len(self._newcomers()) >= PLACES - 1
            return not full and self._joins() is not None
        if what == "kill a newcomer":
            new = self._joins()
            time.sleep(self._draw.uniform(0, 3))
            return self._end(new, signal.SIGKILL, "killed")
        if len(there) < 2:
            return False
        if what == "kill who lets in":
            new = self._joins()
            self.wait_for(
                "a newcomer is not ready",
                lambda: "ready" in new.lines or new.child.poll() is not None,
            )
            time.sleep(self._draw.uniform(0, 0.4))
            first = min(self.there(), key=lambda worker: worker.rank)
            return self._end(first, signal.SIGKILL, "killed")
        if what == "kill a server":
            left = [server for server in self._servers if server.is_in]
            if len(left) < 2:
                return False
            killed = self._draw.choice(left)
            self._end(killed, signal.SIGKILL, "killed")
            rank = int(killed.name[-1])
            self._after(self._draw.uniform(0, 3), lambda: self._serve(rank, late=True))
            return True
        if what == "kill the scheduler":
            self.scheduler.send_signal(signal.SIGKILL)
            self.scheduler.wait()
            time.sleep(self._draw.uniform(0, 1))
            self.scheduler = self._schedules()
            return True
        one = self._draw.choice(there)
        if what in ("cut off", "slow down"):
            return self._bed.shaped and self._disturb_host(one, what == "cut off")
        if what == "stop":
            one.child.send_signal(signal.SIGSTOP)
            self._after(PAUSE_S, lambda: one.child.send_signal(signal.SIGCONT))
            return True
        if what == "hang":
            self._after(HANGS_S, lambda: one.child.send_signal(signal.SIGKILL))
        return self._end(one, SIGNALS[what], what)

    def _disturb_host(self, worker: Worker, cut: bool) -> bool:
        host = worker.host
        if not cut:
            self._bed.set_rate(host, SLOW_RATE, SLOW_RATE)
            self._after(SLOW_S, lambda: self._bed.set_rate(host, None, None))
            return True
        worker.struck = "cut off"
        self._bed.cut(host)
        self._after(2 * SILENCE_S, lambda: self._bed.mend(host))
        return True

    def _joins(self) -> Worker:
        return self._train(f"worker{len(self.workers)}", {"DMLC_TASK_ID": JOINS})

    @staticmethod
    def _end(node: Node, number: int, how: str) -> bool:
        node.struck = how
        node.child.send_signal(number)
        return True

    def _after(self, seconds: float, what: Callable[[], object]) -> None:
        self._later.append((time.monotonic() + seconds, what))

    def _do_what_is_due(self) -> None:
        now = time.monotonic()
        due = [what for when, what in self._later if when <= now]
        self._later = [each for each in self._later if each[0] > now]
        for what in due:
            what()

    # --- the end ----------------------------------------------------------------------------------

    def end(self) -> list[dict[str, object]]:
        """What those who are there have to say."""
        last = self._folder / "last"
        unfinished = last.with_suffix(".part")
        unfinished.write_text(str(self.steps() + STEPS_AFTER))
        unfinished.rename(last)
        for worker in self._newcomers():  # it may come too late
            worker.may_end = True
        stays = ("hang", "hold the GIL")
        self.wait_for(
            "not all have ended",
            lambda: all(w.child.poll() is not None for w in self.workers if w.struck not in stays),
        )
        for worker in self.workers:
            if worker.child.poll() is None:
                worker.child.send_signal(signal.SIGKILL)
        self.wait_for("the scheduler does not end", lambda: self.scheduler.poll() is not None)
        self.wait_for(
            "a server does not end",
            lambda: all(server.child.poll() is not None for server in self._servers),
        )
        return [
            json.loads(line)
            for worker in self.workers
            if not worker.struck
            for line in worker.lines
            if line.startswith("{")
        ]


def run(seconds: float, every: float, seed: int, only: Collection[str] = ()) -> dict[str, object]:
    hosts = ["scheduler", *(f"server{rank}" for rank in range(SERVERS)), *WORKERS_HOSTS]
    of_kind = LoopbackBed if privilege_missing() else Bed
    with of_kind(hosts) as bed, tempfile.TemporaryDirectory() as folder:
        chaos = Chaos(bed, Path(folder), seed, only)
        chaos.wait_for("the job does not begin", lambda: chaos.steps() >= 10)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            chaos.happens(every)
        told = chaos.end()
        if not told:
            raise LabError(f"nobody is left\n{chaos.report()}")
        if len({each["digest"] for each in told}) != 1:
            raise LabError(f"not all have the same state\n{chaos.report()}")
        useful = useful_of(chaos.ends(), chaos.happened)
        return {"seed": seed, "events": chaos.done(), "left": len(told), **useful}


def useful_of(ends: Sequence[End], happened: Sequence[tuple[float, str]]) -> dict[str, object]:
    """Counted by workers' seconds: what a step takes is held against the median of as many workers.
    What is lost between two events, the first one has cost."""
    durations: dict[int, list[float]] = {}
    steps = [(end, end.moment - before.moment) for before, end in zip(ends, ends[1:])]
    for end, took in steps:
        durations.setdefault(end.workers, []).append(took)
    medians = {workers: statistics.median(took) for workers, took in durations.items()}
    spent = sum(end.workers * took for end, took in steps)
    lost: dict[str, list[float]] = {}
    causes = [(ends[0].moment, "nothing yet"), *happened, (float("inf"), "")]
    for (began, what), (after, _) in zip(causes, causes[1:]):
        its = [took - medians[end.workers] for end, took in steps if began < end.moment <= after]
        lost.setdefault(what, []).append(sum(its))
    return {
        "steps": len(steps),
        "median_s": {workers: round(medians[workers], 4) for workers in sorted(medians)},
        "longest_s": round(max(took for _, took in steps), 2),
        "useful": round(sum(end.workers * medians[end.workers] for end, _ in steps) / spent, 3),
        "lost_s": {what: round(statistics.mean(its), 2) for what, its in sorted(lost.items())},
    }


def main(argv: Sequence[str]) -> int:
    parser = Parser(prog="python -m scripts.soak.chaos", description=__doc__)
    add = parser.add_argument
    add("--seconds", type=float, default=600, help="of each job (default: %(default)s)")
    add("--every", type=float, default=10, help="so many seconds (default: %(default)s)")
    add("--jobs", type=int, default=1)
    add("--seed", type=int, default=1, help="of the first job (default: %(default)s)")
    add(
        "--only",
        nargs="+",
        default=[],
        choices=WEIGHTS,
        metavar="EVENT",
        help="of " + ", ".join(WEIGHTS) + "; workers also join when few are left",
    )
    asked = parser.parse_args(argv)
    if min(asked.seconds, asked.every, asked.jobs) <= 0:
        parser.error("seconds and jobs above 0")
    try:
        for seed in range(asked.seed, asked.seed + asked.jobs):
            print(json.dumps(run(asked.seconds, asked.every, seed, asked.only)), flush=True)
    except LabError as error:
        print(f"chaos, seed {seed}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    run_program("chaos", main)
