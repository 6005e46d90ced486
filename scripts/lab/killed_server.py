"""Does LeNet-5 learn under MLfabric, its server killed on the way, what it learns with dist_sync?

Four workers, a server and its replica, each on a host of its own; the same with dist_sync, whose
server lives. With every seed both once.
"""

from __future__ import annotations

import os
import queue
import statistics
import sys
import tempfile
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from pslite_ext.command_line import Parser
from scripts.lab.bed.bed import Bed
from scripts.lab.bed.namespaces import LabError, privilege_missing
from scripts.lab.program import run_program
from scripts.lab.systems import dying_server
from scripts.lab.systems.job import ROOT, environment, place
from tracer.fabric import events, read

SCRIPT = ROOT / "examples" / "train_lenet.py"
WORKERS = 4
HOSTS = ("scheduler", "server0", *(f"worker{rank}" for rank in range(WORKERS)))
RATE = 1e9
DELAY_BOUND = 30
LEARNING_RATE = "0.02"  # momentum makes more of gradients that are late
_TIMEOUT_S = 300.0


@dataclass(frozen=True)
class Survival:
    accuracy: float
    most_delay: int
    paused_s: float  # from the server's last commit to its replica's first


def _accuracies(hosts: Sequence[str], words: Sequence[str], env: dict[str, str]) -> list[float]:
    """Of each worker's last model; the worker that ended last comes last."""
    lines: deque[str] = deque(maxlen=200)
    with Bed(hosts, RATE) as bed:
        base = environment(bed, WORKERS, 1, int("replica0" in hosts))
        beside_it = os.pathsep.join([str(SCRIPT.parent), base["PYTHONPATH"]])
        base |= {"DMLC_PS_VAN_TYPE": "mercury", "PYTHONPATH": beside_it, **env}
        processes = {
            host: bed.start(
                host, [sys.executable, *words], base | place(bed, host, host), lines.append
            )
            for host in hosts
        }
        deadline = time.monotonic() + _TIMEOUT_S
        with suppress(queue.Empty):  # who has not ended by then is ended
            for _ in hosts:
                bed.processes.ended.get(timeout=max(0.0, deadline - time.monotonic()))
    expected = {"server0": -9 if "replica0" in hosts else 0}
    if wrong := [h for h, p in processes.items() if p.returncode != expected.get(h, 0)]:
        raise LabError("\n".join([f"{wrong[0]} did not end as it should:", *list(lines)[-30:]]))
    return [float(line.split()[1]) for line in lines if line.startswith("accuracy ")]


def together(seed: int, epochs: int) -> float:
    """The accuracy with dist_sync: all workers end with the same model."""
    words = [str(SCRIPT), "--kvstore", "dist_sync", "--epochs", str(epochs), "--seed", str(seed)]
    accuracies = _accuracies(HOSTS, words, {})
    if len(accuracies) != WORKERS or len(set(accuracies)) != 1:
        raise LabError(f"with dist_sync, the workers' accuracies are {accuracies}")
    return accuracies[0]


def killed(seed: int, epochs: int) -> Survival:
    words = ["--epochs", str(epochs), "--seed", str(seed), "--learning-rate", LEARNING_RATE]
    with tempfile.TemporaryDirectory() as folder:
        accuracies = _accuracies(
            [*HOSTS, "replica0"],
            [dying_server.__file__, str(SCRIPT), "--kvstore", "dist_async", *words],
            {"MERCURY_FABRIC": "1", "MERCURY_TRACE_DIR": folder},
        )
        history = read(folder)
        told = list(events(folder))
    if len(accuracies) != WORKERS:
        raise LabError(f"of {WORKERS} workers, {len(accuracies)} told their accuracy")
    commits = [float(e["t"]) for e in told if e["event"] == "commit"]
    died = [float(e["t"]) for e in told if e["event"] == "took_over"]
    if len(died) != 1 or max(commits) < died[0]:
        raise LabError("the replica did not go on")
    last = max(t for t in commits if t <= died[0])
    first = min(t for t in commits if t > died[0])
    # Workers do not wait for each other at the end: the last one has the model with all updates.
    return Survival(accuracies[-1], max(history.delays), first - last)


def _mean(values: Sequence[float]) -> str:
    spread = f" ± {statistics.stdev(values):.4f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.4f}{spread}"


def main(argv: Sequence[str]) -> int:
    parser = Parser(prog="python -m scripts.lab.killed_server", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="how many (default: %(default)s)")
    parser.add_argument("--epochs", type=int, default=32, help="(default: %(default)s)")
    asked = parser.parse_args(argv)
    if asked.seeds < 1 or asked.epochs < 10:
        parser.error("at least one seed and ten epochs")
    try:
        if (reason := privilege_missing()) is not None:
            raise LabError(reason)
        sums: list[float] = []
        survivals: list[Survival] = []
        for seed in range(1, asked.seeds + 1):
            sums.append(together(seed, asked.epochs))
            survivals.append(now := killed(seed, asked.epochs))
            print(
                f"seed {seed} of {asked.seeds}: accuracy {now.accuracy:.4f}, with dist_sync"
                f" {sums[-1]:.4f}; most delay {now.most_delay}, bound {DELAY_BOUND};"
                f" without commits for {now.paused_s:.2f} s",
                flush=True,
            )
    except LabError as error:
        print(f"killed_server: {error}", file=sys.stderr)
        return 1
    print(
        f"mean accuracy {_mean([s.accuracy for s in survivals])}, with dist_sync {_mean(sums)};"
        f" most delay {max(s.most_delay for s in survivals)};"
        f" without commits for at most {max(s.paused_s for s in survivals):.2f} s"
    )
    return 0


if __name__ == "__main__":
    run_program("killed_server", main)
