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
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path

from scripts.lab.bed.namespaces import privilege_missing
from scripts.soak.faults import FAULTS
from scripts.soak.job import ROOT, DisturbedJob, NotStarted
from scripts.soak.page import Round, page, table
from scripts.soak.verdict import Verdict, judge

START_S = 60.0
STEPS_FIRST = 3
# Steps after the fault that show that a job goes on.
STEPS_AFTER = 20
# A fault that strikes once may need a moment to be noticed.
GRACE_S = 5.0
SHAPES = ((2, 2), (3, 2), (2, 1))
VANS = ("zmq", "mercury")


def one_round(
    seed: int,
    folder: Path,
    only: Sequence[str] = (),
    vans: Sequence[str] = VANS,
    settings: Mapping[str, str] | None = None,
) -> Round:
    """`folder`: where its processes' output is, afterwards."""
    draw = random.Random(seed)
    van = draw.choice(list(vans))
    fault = draw.choice([f for f in FAULTS if not only or f.name in only])
    workers, servers = draw.choice(SHAPES)
    moment = draw.uniform(0.0, 1.0)
    with DisturbedJob(folder, van, workers, servers, settings or {}) as job:
        try:
            job.begin(STEPS_FIRST, START_S)
        except NotStarted as error:
            (folder / "start.log").write_text(str(error))
            return Round(seed, van, fault.name, Verdict("not started", f"in {START_S:g} s"), 0)
        time.sleep(moment)
        struck_at = time.monotonic()
        culprits = fault.strike(job, draw)
        # A fault that the job survives shows by its going on.
        within_s = (fault.promise.within_s or 30.0) + GRACE_S
        must_end = not fault.promise.may_go_on
        ended = job.outcome(struck_at, within_s, 10**9 if must_end else STEPS_AFTER)
        verdict = judge(fault.promise, ended, culprits)
    return Round(seed, van, fault.name, verdict, max(p.after_s for p in ended))


def soak(
    seed: int,
    enough: Callable[[int], bool],
    only: Sequence[str] = (),
    vans: Sequence[str] = VANS,
    keep: Path | None = None,
    told: Callable[[str], None] = print,
) -> list[Round]:
    """Rounds until there are `enough`, or Ctrl-C."""
    rounds: list[Round] = []
    try:
        while not enough(len(rounds)):
            with tempfile.TemporaryDirectory() as folder:
                done = one_round(seed + len(rounds), Path(folder), only, vans)
                rounds.append(done)
                told(
                    f"{datetime.now():%H:%M:%S} seed {done.seed} {done.van} {done.fault}: "
                    f"{done.verdict.outcome} ({done.seconds:.1f} s) {done.verdict.detail}"
                )
                if not done.verdict.right and keep is not None:
                    _keep(Path(folder), keep / f"seed-{done.seed}")
    except KeyboardInterrupt:
        told(f"interrupted after {len(rounds)} rounds")
    return rounds


def _keep(folder: Path, where: Path) -> None:
    where.mkdir(parents=True, exist_ok=True)
    for log in folder.glob("*.log"):
        (where / log.name).write_bytes(log.read_bytes())


def _origin() -> str:
    commit = subprocess.run(
        ["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, capture_output=True, text=True
    ).stdout.strip()
    return f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC, commit {commit or 'unknown'}"


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

    rounds = soak(seed, enough, options.only, options.vans, options.keep, told)
    hours = (time.monotonic() - began) / 3600
    if options.page is not None and rounds:
        command = f'make soak SOAK="--seed {seed} --seconds {options.seconds:g}"'
        options.page.write_text(page(rounds, command, _origin(), hours))
    print(table(rounds))
    wrong = [r for r in rounds if not r.verdict.right]
    for r in wrong:
        again = shlex.join(["--seed", str(r.seed), "--rounds", "1", *_narrowed(options)])
        print(f"{r.verdict.outcome}: {r.verdict.detail}\n  again: make soak SOAK='{again}'")
    print(f"{len(rounds)} jobs, {len(wrong)} wrong")
    return 1 if wrong or not rounds else 0


def _narrowed(options: argparse.Namespace) -> list[str]:
    """What else decides what a seed draws."""
    words = ["--only", *options.only] if options.only else []
    return words + (["--vans", *options.vans] if options.vans != list(VANS) else [])


if __name__ == "__main__":
    sys.exit(main())
