"""Does PyTorch learn under MLfabric what it learns in step?

LeNet-5 on digits, and a small transformer on this project's docs, character by character. Four
workers on this machine's loopback: in step, asynchronous, at most two updates ahead of the slowest,
asynchronous with the server killed on the way, and in asynchronous local steps. Each with every
seed.
"""

from __future__ import annotations

import json
import os
import queue
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from pslite_ext.command_line import Parser
from scripts.lab.bed.bed import LoopbackBed
from scripts.lab.bed.namespaces import LabError
from scripts.lab.program import run_program
from scripts.lab.systems import dying_server
from scripts.lab.systems.job import ROOT, environment, place
from scripts.lab.systems.peers import PeerMissing, peer_python
from tracer.fabric import read

SCRIPT = ROOT / "scripts" / "lab" / "systems" / "torch_fabric.py"
WORKERS = 4
HOSTS = ("scheduler", "server0", *(f"worker{rank}" for rank in range(WORKERS)))
ROUNDS = {"lenet5": 240, "transformer": 300}
# Of the task's learning rate, where workers do not wait: each one's update is a step of its own.
# SGD with momentum comes to nothing with all of it; AdamW learns more.
PARTS = {"lenet5": 1 / WORKERS, "transformer": 1.0}
RATE = (
    10e9  # bit/s of each link, as the scheduler is told: a busy machine's pauses are no slow link
)
_TOLD_EVERY_S = 2.0
_TIMEOUT_S = 600.0


class Way(NamedTuple):
    mode: str
    killed: bool = False
    every: int = 1  # so many steps are one update

    @property
    def name(self) -> str:
        local = f", every={self.every}" if self.every > 1 else ""
        return f"{self.mode}{local}{', the server killed' * self.killed}"


WAYS = (
    Way("sync"),
    Way("async"),
    Way("stale:2"),
    Way("async", killed=True),
    Way("async", every=10),
)


class Trained(NamedTuple):
    loss: float
    right: float
    dropped: int  # updates of all workers
    most_delay: int


def train(task: str, way: Way, rounds: int, seed: int) -> Trained:
    with tempfile.TemporaryDirectory() as folder:
        told = _workers_say(task, way, rounds, seed, folder)
        delays = read(folder).delays
    if len(told) != WORKERS or len({each["digest"] for each in told}) != 1:
        raise LabError(f"{task}, {way.mode}: the workers have different models")
    fates = [each["fates"] for each in told]
    reasons = ("too_old", "overtaken", "late", "orphaned")
    dropped = sum(its[reason] for its in fates for reason in reasons)
    return Trained(told[0]["loss"], told[0]["right"], dropped, max(delays, default=0))


def _workers_say(task: str, way: Way, rounds: int, seed: int, folder: str) -> list[dict[str, Any]]:
    hosts = [*HOSTS, "replica0"] if way.killed else [*HOSTS]
    # Averages of what workers do alone need no smaller steps.
    part = 1.0 if way.mode == "sync" or way.every > 1 else PARTS[task]
    words = [str(SCRIPT), task, way.mode, *map(str, (rounds, seed, part, way.every))]
    if way.killed:
        words = [dying_server.__file__, *words]
    lines: list[str] = []
    feed = Path(folder) / "feed"
    feed.touch()
    with LoopbackBed(hosts) as bed:
        links = [{"host": bed.address(host), "in": RATE, "out": RATE} for host in hosts]
        env = environment(bed, WORKERS, 1, int(way.killed))
        paths = [env["PYTHONPATH"], str(Path(sys.prefix) / "digits")]
        env |= {
            "DMLC_PS_VAN_TYPE": "mercury",
            "MERCURY_FABRIC": "1",
            "MERCURY_TRACE_DIR": folder,
            "MERCURY_FABRIC_FEED": str(feed),
            "PYTHONPATH": os.pathsep.join(paths),
        }
        if way.mode != "sync":
            env["MERCURY_FABRIC_MODE"] = way.mode
        python = peer_python("torch-ddp")
        processes = {
            host: bed.start(host, [python, *words], env | place(bed, host, host), lines.append)
            for host in hosts
        }
        deadline = time.monotonic() + _TIMEOUT_S
        left = len(hosts)
        while left and time.monotonic() < deadline:  # who has not ended by then is ended
            with feed.open("a") as file:
                file.writelines(f"{json.dumps(rates)}\n" for rates in links)
            with suppress(queue.Empty):
                bed.processes.ended.get(timeout=_TOLD_EVERY_S)
                left -= 1
    expected = {"server0": -9 if way.killed else 0}
    if wrong := [h for h, p in processes.items() if p.returncode != expected.get(h, 0)]:
        raise LabError("\n".join([f"{wrong[0]} did not end as it should:", *lines[-30:]]))
    return [json.loads(line) for line in lines if line.startswith("{")]


def _mean(values: Sequence[float], digits: int) -> str:
    spread = f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.{digits}f}{spread}"


def main(argv: Sequence[str]) -> int:
    parser = Parser(prog="python -m scripts.lab.torch_modes", description=__doc__)
    add = parser.add_argument
    add("--seeds", type=int, default=3, help="how many (default: %(default)s)")
    add("--rounds", type=int, help="instead of each task's own number")
    ways = {way.name: way for way in WAYS}
    add("--ways", nargs="+", choices=ways, default=list(ways), metavar="WAY", help="; ".join(ways))
    add("--only", nargs="+", choices=ROUNDS, default=list(ROUNDS), metavar="TASK")
    asked = parser.parse_args(argv)
    if asked.seeds < 1 or (asked.rounds is not None and asked.rounds < 50):
        parser.error("at least one seed and fifty rounds")
    print("| task | mode | loss | right | updates dropped | versions late, at most |")
    print("|---|---|---|---|---|---|")
    try:
        for task in asked.only:
            rounds = asked.rounds or ROUNDS[task]
            for way in map(ways.__getitem__, asked.ways):
                runs = [train(task, way, rounds, seed) for seed in range(1, asked.seeds + 1)]
                loss = _mean([run.loss for run in runs], 3)
                right = _mean([100 * run.right for run in runs], 1)
                pushed = len(runs) * WORKERS * rounds // way.every
                dropped = f"{sum(run.dropped for run in runs)} of {pushed}"
                late = max(run.most_delay for run in runs)
                words = (f"{task}, {rounds} rounds", way.name, loss, f"{right} %", dropped, late)
                print(f"| {' | '.join(map(str, words))} |", flush=True)
    except (LabError, PeerMissing) as error:
        print(f"torch_modes: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    run_program("torch_modes", main)
