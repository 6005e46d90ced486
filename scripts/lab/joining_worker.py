"""How long does a worker take to join a job, and how long do the others wait for it?

Three workers, each with a server beside it, on three hosts; the scheduler on a fourth, and the
newcomer on a fifth. A step sleeps, as if it computed, and sums gradients. Floor: the state's bytes
at the rate of one link.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pslite_ext.command_line import Parser
from pslite_ext.launch.join import JOINS, SERVES
from scripts.lab.bed.bed import Bed
from scripts.lab.bed.namespaces import LabError, privilege_missing
from scripts.lab.program import run_program
from scripts.lab.systems.job import ROOT, environment, place

SCRIPT = ROOT / "scripts" / "lab" / "workloads" / "steps_and_newcomers.py"
WORKERS = 3
HOSTS = [f"host{rank}" for rank in range(WORKERS)]
STEPS_BEFORE, STEPS_AFTER = 10, 20
_GOODPUT = 1448 / 1514  # of a rate that counts frames
_TIMEOUT_S = 300.0


@dataclass(frozen=True)
class Joining:
    step_s: float  # the median of those before
    waits_s: float  # from when the newcomer is ready until it is in
    floor_s: float  # of its state
    lost_s: float  # by which the others' steps were longer than the median, all together
    after_s: float  # the median of those after it


def join(rate: float, state_mb: float, gradients_mb: float, computes_s: float) -> Joining:
    names = [f"{role}{rank}" for role in ("server", "worker") for rank in range(WORKERS)]
    at = {"scheduler": "scheduler", **{name: HOSTS[int(name[-1])] for name in names}}
    lines: dict[str, list[str]] = {name: [] for name in [*at, "newcomer"]}
    with Bed(["scheduler", *HOSTS, "apart"], rate) as bed, tempfile.TemporaryDirectory() as folder:
        base = environment(bed, WORKERS, WORKERS, 0)
        base |= {"DMLC_PS_VAN_TYPE": "mercury", "MERCURY_MIN_WORKERS": "1"}
        base |= {"MERCURY_MAX_WORKERS": str(WORKERS + 1)}
        trains = [str(SCRIPT), folder, str(state_mb), str(gradients_mb), str(computes_s)]

        def start(name: str, host: str, env: dict[str, str]) -> Any:
            words = trains if env["DMLC_ROLE"] == "worker" else ["-c", SERVES]
            return bed.start(host, [sys.executable, *words], base | env, lines[name].append)

        processes = {name: start(name, host, place(bed, name, host)) for name, host in at.items()}
        deadline = time.monotonic() + _TIMEOUT_S

        def wait_for(what: str, done: Any) -> None:
            while not done():
                if time.monotonic() > deadline:
                    raise LabError(
                        f"{what}:\n" + "\n".join(lines["worker0"][-20:] + lines["newcomer"][-20:])
                    )
                time.sleep(0.05)

        def steps() -> int:
            return sum(line.startswith("step ") for line in lines["worker0"])

        wait_for("the job does not begin", lambda: steps() >= STEPS_BEFORE)
        env = place(bed, "worker9", "apart") | {"DMLC_TASK_ID": JOINS}
        processes["newcomer"] = start("newcomer", "apart", env)
        wait_for("the newcomer does not get in", lambda: "in" in lines["newcomer"])
        last = Path(folder) / "last"
        unfinished = last.with_suffix(".part")
        unfinished.write_text(str(steps() + STEPS_AFTER))
        unfinished.rename(last)
        wait_for(
            "not all have ended",
            lambda: all(process.poll() is not None for process in processes.values()),
        )
    if wrong := [name for name, process in processes.items() if process.returncode != 0]:
        raise LabError(f"{wrong[0]} did not end well:\n" + "\n".join(lines[wrong[0]][-30:]))
    told = [json.loads(line) for its in lines.values() for line in its if line.startswith("{")]
    if len({each["digest"] for each in told}) != 1 or len(told) != WORKERS + 1:
        raise LabError("not all workers have the same state")
    (new,) = (each for each in told if each["began"])
    return _measured(told[0]["ends"], new, state_mb * 8e6 / (rate * _GOODPUT))


def _measured(ends: Sequence[float], new: dict[str, Any], floor_s: float) -> Joining:
    """`ends`: the moments at which another worker's steps ended."""
    steps = list(zip(ends, ends[1:]))
    before = [end - begin for begin, end in steps[1:] if end < new["ready"]]
    during = [end - begin for begin, end in steps if end >= new["ready"]]
    after = during[-STEPS_AFTER // 2 :]
    step_s, after_s = statistics.median(before), statistics.median(after)
    first = during[: -STEPS_AFTER // 2]
    lost_s = sum(each - max(step_s, after_s) for each in first)
    return Joining(step_s, new["in"] - new["ready"], floor_s, max(0.0, lost_s), after_s)


def main(argv: Sequence[str]) -> int:
    parser = Parser(prog="python -m scripts.lab.joining_worker", description=__doc__)
    add = parser.add_argument
    add("--times", type=int, default=3, help="(default: %(default)s)")
    add("--rate", type=float, default=1e9, help="of each host, in bit/s (default: %(default)g)")
    add("--state-mb", type=float, default=440, help="(default: %(default)g)")
    add("--gradients-mb", type=float, default=24, help="a step's (default: %(default)g)")
    add("--computes-s", type=float, default=0.5, help="a step's sleep (default: %(default)g)")
    asked = parser.parse_args(argv)
    if asked.times < 1 or min(asked.rate, asked.state_mb, asked.gradients_mb) <= 0:
        parser.error("at least one time, and a rate and sizes above 0")
    try:
        if (reason := privilege_missing()) is not None:
            raise LabError(reason)
        print(
            "| a step | from ready to in | floor | lost by the others | a step with the newcomer |"
        )
        print("|---|---|---|---|---|")
        for _ in range(asked.times):
            its = join(asked.rate, asked.state_mb, asked.gradients_mb, asked.computes_s)
            print(
                f"| {its.step_s:.2f} s | {its.waits_s:.2f} s | {its.floor_s:.2f} s "
                f"| {its.lost_s:.2f} s | {its.after_s:.2f} s |",
                flush=True,
            )
    except LabError as error:
        print(f"joining_worker: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    run_program("joining_worker", main)
