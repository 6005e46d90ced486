"""`make soak`: disturbs jobs at random until the time is over; exit code 1 if anything was wrong.

Each round is a job of its own and follows from its seed alone: the first round has the seed that
is given, the next one the next number. So `--seed SEED --rounds 1` repeats the round of a failure
(its random choices; processes are never quite as fast as before).
"""

from __future__ import annotations

import argparse
import random
import shlex
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from scripts.lab.bed.namespaces import privilege_missing
from scripts.soak.fabric_verdict import MODES, judge_fabric, must_end
from scripts.soak.faults import FAULTS, SURVIVES, Fault
from scripts.soak.job import ROOT, DisturbedJob, NotStarted
from scripts.soak.page import again, page, table
from scripts.soak.record import Round, Run, read, rounds_of
from scripts.soak.verdict import NOT_STRUCK, Verdict, judge, judge_elastic

START_S = 60.0
STEPS_FIRST = 3
# Steps after the fault that show that a job goes on.
STEPS_AFTER = 20
# Who has not ended so long after it was promised hangs.
HANG_S = 5.0
LEAK = "leak"
FAILED_ITSELF = "the soak itself failed"
GIVES_UP_AFTER = 10  # rounds
SHAPES = ((2, 2), (3, 2), (2, 1))
ELASTIC = "elastic"  # mercury, in a job that goes on without nodes that it loses
FABRIC = "mlfabric"
VANS = ("zmq", "mercury", ELASTIC, FABRIC)
OF_FABRIC = ((3, 1), (3, 3))  # workers, servers


@dataclass(frozen=True)
class Plan:
    """What follows from a seed, and from what it may choose from."""

    van: str
    fault: Fault
    workers: int
    servers: int
    moment: float
    mode: str = ""  # of MLfabric

    @staticmethod
    def drawn(draw: random.Random, only: Sequence[str], vans: Sequence[str]) -> Plan:
        van = draw.choice(list(vans))
        fault = draw.choice([f for f in FAULTS if not only or f.name in only])
        if van == FABRIC:
            moment, mode = draw.uniform(0.0, 1.0), draw.choice(MODES)
            return Plan(van, fault, *draw.choice(OF_FABRIC), moment, mode)
        return Plan(van, fault, *draw.choice(SHAPES), draw.uniform(0.0, 1.0))


def narrowed(only: Sequence[str], vans: Sequence[str]) -> str:
    """What else decides what a seed draws, as words of the command."""
    words = ["--only", *only] if only else []
    return shlex.join(words + (["--vans", *vans] if tuple(vans) != VANS else []))


def one_round(
    seed: int,
    folder: Path,
    only: Sequence[str] = (),
    vans: Sequence[str] = VANS,
    settings: Mapping[str, str] | None = None,
) -> Round:
    """`folder`: where its processes' output is, afterwards."""
    draw = random.Random(seed)
    plan = Plan.drawn(draw, only, vans)
    began = time.monotonic()
    seconds = 0.0
    try:
        told = dict(settings or {})
        if plan.van == ELASTIC:
            told["MERCURY_MIN_WORKERS"] = "1"
        elif plan.van == FABRIC:
            told["MERCURY_FABRIC_MODE"] = plan.mode
        van = "mercury" if plan.van in (ELASTIC, FABRIC) else plan.van
        shape = (plan.workers, plan.servers)
        job = DisturbedJob(folder, van, *shape, told, (), plan.van == FABRIC)
        with job:
            verdict, seconds = _disturb(job, plan, draw)
        if verdict.right and (left := job.left_after()):
            verdict = Verdict(LEAK, "; ".join(left))
    except NotStarted as error:
        (folder / "start.log").write_text(str(error))
        verdict = Verdict("not started", f"in {START_S:g} s")
    except Exception as error:
        (folder / "soak.log").write_text(traceback.format_exc())
        verdict = Verdict(FAILED_ITSELF, f"{type(error).__name__}: {error}")
    took_s = time.monotonic() - began
    words = narrowed(only, vans)
    return Round(seed, plan.van, plan.fault.name, verdict, seconds, words, took_s)


def _disturb(job: DisturbedJob, plan: Plan, draw: random.Random) -> tuple[Verdict, float]:
    """What came of it, and after how many seconds."""
    job.begin(STEPS_FIRST, START_S)
    time.sleep(plan.moment)
    began = time.monotonic()
    strike = plan.fault.strike(job, draw)
    # One that waits for something to strike did so at the end.
    struck_at = time.monotonic() if plan.fault.waits else began
    promise = plan.fault.promise if strike.happened else SURVIVES
    # A fault that the job survives shows by its going on.
    within_s = (promise.within_s or 30.0) + HANG_S
    if plan.van == FABRIC:
        lost = strike.hit if promise.may_end else []
        ends = promise.may_end and not promise.may_go_on and must_end(plan.mode, lost)
        steps = 10**9 if ends else STEPS_AFTER
        ended = job.outcome(struck_at, within_s, steps, lost)
        verdict = judge_fabric(promise, plan.mode, ended, strike.hit)
    elif (
        plan.van == ELASTIC
        and strike.happened
        and plan.fault.goes_on_without(strike.culprits, plan.servers)
    ):
        ended = job.outcome(struck_at, within_s, STEPS_AFTER, strike.culprits)
        verdict = judge_elastic(ended, strike.culprits)
    else:
        ended = job.outcome(struck_at, within_s, STEPS_AFTER if promise.may_go_on else 10**9)
        verdict = judge(promise, ended, strike.culprits)
    if verdict.right and not strike.happened:
        verdict = Verdict(NOT_STRUCK, "nothing came that way")
    if verdict.right and (left := job.left()):
        verdict = Verdict(LEAK, "; ".join(left))
    return verdict, max((p.after_s for p in ended), default=0.0)


def soak(
    seed: int,
    enough: Callable[[int], bool],
    only: Sequence[str] = (),
    vans: Sequence[str] = VANS,
    keep: Path | None = None,
    told: Callable[[str], None] = print,
    add: Callable[[Round], None] = lambda _: None,
    make_round: Callable[..., Round] = one_round,
) -> list[Round]:
    """Rounds until there are `enough`, or Ctrl-C, or the soak itself fails again and again."""
    rounds: list[Round] = []
    try:
        while not enough(len(rounds)):
            with tempfile.TemporaryDirectory() as folder:
                done = make_round(seed + len(rounds), Path(folder), only, vans)
                rounds.append(done)
                add(done)
                told(
                    f"{datetime.now():%H:%M:%S} seed {done.seed} {done.van} {done.fault}: "
                    f"{done.verdict.outcome} ({done.seconds:.1f} s) {done.verdict.detail}"
                )
                if not done.verdict.right and keep is not None:
                    _keep(Path(folder), keep / f"seed-{done.seed}")
            last = rounds[-GIVES_UP_AFTER:]
            if len(last) == GIVES_UP_AFTER and all(
                r.verdict.outcome == FAILED_ITSELF for r in last
            ):
                told(f"the soak itself has failed {GIVES_UP_AFTER} times: it gives up")
                break
    except KeyboardInterrupt:
        told(f"interrupted after {len(rounds)} rounds")
    return rounds


def _keep(folder: Path, where: Path) -> None:
    where.mkdir(parents=True, exist_ok=True)
    for log in folder.glob("*.log"):
        (where / log.name).write_bytes(log.read_bytes())


def _commit() -> str:
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--exclude=*", "--abbrev=12"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    return described.stdout.strip() or "unknown"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="make soak", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=600, help="how long (default: 600)")
    parser.add_argument("--rounds", type=int, help="so many rounds instead")
    parser.add_argument("--seed", type=int, help="of the first round (default: drawn, and said)")
    parser.add_argument(
        "--only",
        nargs="+",
        default=[],
        choices=[f.name for f in FAULTS],
        metavar="FAULT",
        help="of " + ", ".join(f.name for f in FAULTS),
    )
    parser.add_argument("--vans", nargs="+", default=list(VANS), choices=VANS, metavar="MODE")
    parser.add_argument("--page", type=Path, help="write the table of faults and outcomes there")
    parser.add_argument(
        "--log",
        type=Path,
        help="add the rounds to this file, a line each; the page is then that of all runs in it",
    )
    parser.add_argument(
        "--keep",
        type=Path,
        default=ROOT / "build" / "soak",
        help="where the output of rounds that went wrong is kept (default: build/soak)",
    )
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    if (reason := privilege_missing()) is not None:
        print(f"make soak: {reason}", file=sys.stderr)
        return 2
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10**6)
    began = time.monotonic()

    def enough(done: int) -> bool:
        if options.rounds is not None:
            return bool(done >= options.rounds)
        return bool(time.monotonic() - began >= options.seconds)

    print(f"seed {seed}", flush=True)

    def told(line: str) -> None:
        print(line, flush=True)

    words = list(sys.argv[1:] if arguments is None else arguments)
    if options.seed is None:
        words += ["--seed", str(seed)]
    when = f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M:%S} UTC"
    run = Run(when, _commit(), f'make soak SOAK="{shlex.join(words)}"')
    rounds = soak(
        seed,
        enough,
        options.only,
        options.vans,
        options.keep,
        told,
        lambda done: run.add(done, options.log),
    )
    if options.page is not None:
        runs = read(options.log) if options.log is not None else [run]
        if rounds_of(runs):
            options.page.write_text(page(runs))
    print(table(rounds))
    wrong = [r for r in rounds if not r.verdict.right]
    for r in wrong:
        print(f"{r.verdict.outcome}: {r.verdict.detail}\n  again: {again(r)}")
    print(f"{len(rounds)} jobs, {len(wrong)} wrong")
    return 1 if wrong or not rounds else 0


if __name__ == "__main__":
    sys.exit(main())
