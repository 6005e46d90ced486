"""Measures systems side by side and writes build/bench/results.json.

Systems that are compared take turns (A B C A B C ...), so that a machine which is busy for a while
is so for all of them. A system that fails is reported with its last lines; the others go on.
Ctrl-C ends the session, removes everything, and writes what has been measured.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

from pslite_ext.command.output import code_of
from scripts.lab.bed.bed import LoopbackBed, best_bed
from scripts.lab.bed.disturbance import Milestones
from scripts.lab.bed.namespaces import LabError, privilege_missing
from scripts.lab.benches import scaling, speed
from scripts.lab.benches.case import Case, Failure, Figures, Row
from scripts.lab.benches.catalogue import (
    BENCHES,
    CHOICES,
    LONG,
    ONCE,
    PROGRAMS,
    cases_of,
    wanted,
)
from scripts.lab.benches.slow_host import SlowHost
from scripts.lab.report import results
from scripts.lab.systems.job import JobFailed, Process, run_job
from scripts.lab.systems.system import NAMES, System, available
from scripts.lab.systems.watch import Watch
from scripts.lab.workloads.workload import WorkloadError, load

ROOT = Path(__file__).resolve().parents[2]
STOCK = str(ROOT / ".venv-stock" / "bin" / "python")  # where `make` puts it


# Figures that compare with links as they were to be.
OF_LINKS = re.compile(r"\bfloor$|/ link$|what links need$|^predicted |^simulated ")


class Session:
    def __init__(self, out: Path, about: dict[str, object]) -> None:
        self.out = out
        self.about = about
        self.rows: list[Row] = []
        self.failures: list[Failure] = []
        self.series: dict[str, dict[str, object]] = {}  # of each case's first repeat
        self.failed = False  # something did that was tried
        self._missing = privilege_missing()

    def unshaped(self, case: Case) -> str | None:
        """Why its links were not limited, if they were to be."""
        return None if case.setting.loopback else self._missing

    def setting(self, case: Case) -> str:
        """As it was, which may be less than was wanted."""
        return f"{case.setting}, but not shaped" if self.unshaped(case) else str(case.setting)

    def add(self, case: Case, figures: Figures) -> None:
        for metric, (value, unit) in figures.items():
            if self.unshaped(case) and OF_LINKS.search(metric):
                continue
            place = (case.bench, case.what, case.system.name, metric, self.setting(case))
            for row in self.rows:
                if (row.bench, row.what, row.system, row.metric, row.setting) == place:
                    row.values.append(value)
                    break
            else:
                self.rows.append(Row(*place[:4], unit, place[4], [value]))

    def fail(self, case: Case, reason: str) -> None:
        place = (case.bench, case.what, self.setting(case), case.system.name)
        failure = Failure(*place, reason)
        if failure not in self.failures:
            self.failures.append(failure)

    def save(self) -> None:
        results.write(self.out, self.about, self.rows, self.failures, self.series.values())


def make_bed(case: Case) -> LoopbackBed:
    setting = case.setting
    hosts = [*dict.fromkeys(setting.places().values())]
    if setting.loopback:
        return LoopbackBed(hosts)
    return best_bed(hosts, setting.rate, setting.classes)


@contextmanager
def disturbed(case: Case, bed: LoopbackBed) -> Iterator[Milestones]:
    """Whatever the case does to the bed, for as long as its job runs."""
    milestones = Milestones()
    if case.disturbance is None:
        yield milestones
        return
    make = case.disturbance
    failed: list[Exception] = []

    def run() -> None:
        try:
            make(bed, milestones)
        except Exception as error:  # of whatever kind: it belongs to the case
            failed.append(error)
        finally:
            milestones.ready.set()

    maker = threading.Thread(target=run)
    maker.start()
    try:
        milestones.ready.wait()
        if not failed:
            yield milestones
    finally:
        milestones.end()
        maker.join()
    if failed:  # what was measured was not what was to be measured
        raise failed[0]


def available_bytes() -> float:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable"):
            return 1024.0 * int(line.split()[1])
    return 0.0


def measure(case: Case, session: Session) -> str:
    """Runs it once; what to say of it."""
    if case.memory_bytes > (there := available_bytes()):
        reason = f"needs {case.memory_bytes / 1e9:.0f} GB, {there / 1e9:.0f} GB are available"
        return _skipped(case, session, reason)
    if case.disturbance is not None and (missing := session.unshaped(case)) is not None:
        return _skipped(case, session, f"its links are to change, but {missing}")
    try:
        with make_bed(case) as bed, disturbed(case, bed) as milestones:
            if case.run is not None:
                by_what = case.run(bed)
                for what, figures in by_what.items():
                    session.add(replace(case, what=what), figures)
                return "; ".join(f"{what}: {_first(of)}" for what, of in by_what.items())

            def tell(_process: Process, event: dict[str, Any]) -> None:
                if event["event"] == "begin":
                    milestones.begun.set()
                if case.hear is not None:
                    case.hear(event)

            outcome = run_job(
                *(bed, case.system, case.config),
                timeout_s=case.timeout_s,
                env=case.env,
                tell=tell,
                at=case.setting.places(),
                watch=Watch(bed) if case.watched else None,
            )
            figures = case.measure(outcome)
    except (JobFailed, LabError, OSError) as error:
        return _failed(case, session, str(error))
    except Exception as error:  # the other cases go on
        return _failed(case, session, f"{type(error).__name__}: {error}")
    begin = outcome.workers[0].get("begin", {}).get("t", 0.0)
    shown: dict[str, object] = {
        "throughput": outcome.throughput(case.zero(outcome) if case.zero else None),
        "timeline": outcome.results[0].get("timeline", []),
        "blocks": [(t - begin, *seen) for t, *seen in outcome.blocks() if t >= begin],
        "curve": [] if case.curve is None else case.curve(),
    }
    place = {"bench": case.bench, "what": case.what, "setting": session.setting(case)}
    session.series.setdefault(str(case), {**place, "system": case.system.name, **shown})
    session.add(case, figures)
    return _first(figures)


def _first(figures: Figures) -> str:
    name, figure = next(iter(figures.items()))
    return f"{name} {results.number(figure.value)} {figure.unit}"


def _skipped(case: Case, session: Session, reason: str) -> str:
    session.fail(case, reason)
    return f"skipped: {reason}"


def _failed(case: Case, session: Session, reason: str) -> str:
    session.fail(case, reason)
    session.failed = True
    return f"failed: {reason.splitlines()[0]}"


def in_turn(cases: Iterable[Case], repeats: int, once: Sequence[str] = ONCE) -> list[Case]:
    """Repeats of what is compared, system after system; the benches in `once` have one."""
    order: list[Case] = []
    for key, group in itertools.groupby(cases, key=lambda c: (c.bench, c.what, c.setting)):
        systems = list(group)
        for repeat in range(1 if key[0] in once else repeats):
            order += [c if c.again is None else c.again(repeat) for c in systems]
    return order


def measure_all(cases: list[Case], session: Session) -> None:
    broken: set[str] = set()
    for i, case in enumerate(cases):
        left = sum(c.estimate_s for c in cases[i:])
        print(f"[{i + 1} of {len(cases)}, about {left / 60:.0f} min left] {case}", flush=True)
        if str(case) in broken:  # it would fail again, and take its time over it
            print("    failed before", flush=True)
            continue
        said = measure(case, session)
        if said.startswith(("failed", "skipped")):
            broken.add(str(case))
        print(f"    {said}", flush=True)
        session.save()


def run_programs(
    benches: Sequence[str],
    systems: Sequence[System],
    session: Session,
    length: str = "usual",
    repeats: int = 1,
) -> None:
    for bench, run in PROGRAMS.items():
        if bench not in benches:
            continue
        try:
            session.rows += run(systems, length, repeats)
        except LabError as error:
            print(f"skipped: {bench}: {error}", flush=True)
        except JobFailed as error:  # what was measured before is kept
            session.failed = True
            print(f"failed: {bench}: {error}", file=sys.stderr)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            session.failed = True
            said = error.stderr.decode() if isinstance(error.stderr, bytes) else error.stderr
            print(f"failed: {bench}: {error}\n{said}", file=sys.stderr)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _profile(text: str) -> Path:
    try:
        load(text)
    except WorkloadError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return Path(text).resolve()


def _nodes(text: str) -> tuple[int, int]:
    workers, _, servers = text.partition("x")
    try:
        counts = int(workers), int(servers or workers)
    except ValueError:
        counts = (0, 0)
    if min(counts) < 1 or counts[0] < 2:
        raise argparse.ArgumentTypeError(f"'{text}' is not WORKERSxSERVERS, such as 8x8")
    return counts


def _above_zero(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"'{text}' is no number above 0")
    return number


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no whole number above 0")
    return int(text)


def _slow(text: str) -> SlowHost:
    host, _, speed = text.partition("=")
    try:
        found = SlowHost(host, float(speed))
    except ValueError:
        found = SlowHost(host, 0.0)
    if not re.fullmatch(r"(worker|server)\d+", host) or not 0 < found.speed <= 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not HOST=SPEED, such as worker0=0.5")
    return found


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    add = parser.add_argument
    add("--only", nargs="+", choices=BENCHES, metavar="BENCH", help=", ".join(BENCHES))
    names = ", ".join(NAMES)
    add("--systems", nargs="+", choices=NAMES, metavar="SYSTEM", default=[*NAMES], help=names)
    length = parser.add_mutually_exclusive_group()
    quick = "the main figures, one repeat, < 5 minutes"
    length.add_argument("--quick", action="store_true", help=quick)
    length.add_argument("--full", action="store_true", help="all models, five repeats")
    usual = f"of each case (default: 1, 3 or 5; of {', '.join(ONCE)} always 1)"
    add("--repeats", type=_count, help=usual)
    only = "only cases whose line in --list holds this, or one of these"
    add("--match", nargs="+", metavar="TEXT", help=only)
    add("--profile", type=_profile, metavar="FILE", help="iterations of this job, nothing else")
    group = parser.add_argument_group("some benches alone")

    def choose(name: str, words: str, **how: Any) -> None:
        of = ", ".join(CHOICES[name])
        group.add_argument(f"--{name}", help=f"{words} ({of})", **how)

    nodes = "workers and servers; of hosts and device: hosts, and workers of each"
    choose("nodes", nodes, nargs="+", type=_nodes, metavar="NxM")
    choose("rate", "of each link, in Mbit/s", type=_above_zero, metavar="MBIT")
    choose("scale", "of the models' sizes", type=_above_zero)
    choose("models", "of these", nargs="+", choices=scaling.MODELS)
    choose("colocate", "only with servers on the workers' hosts", action="store_true")
    slow = "one host with a slower link, such as worker0=0.5; servers on it sum less"
    choose("slow", slow, type=_slow, metavar="HOST=SPEED")
    add("--list", action="store_true", help="say what would be run")
    add(
        "--stock-python",
        default=os.environ.get("MERCURY_STOCK_PYTHON") or (STOCK if Path(STOCK).exists() else None),
        help="Python of an environment with the stock wheel (default: $MERCURY_STOCK_PYTHON)",
    )
    add("--out", type=Path, default=ROOT / "build" / "bench" / "results.json")
    asked = parser.parse_args()
    for name, of in CHOICES.items():
        if getattr(asked, name) and (others := [b for b in _benches(asked) if b not in of]):
            parser.error(f"--{name} is for {', '.join(of)}, not for {others[0]}")
    return asked


def _benches(asked: argparse.Namespace) -> list[str]:
    if asked.profile:
        return ["iteration"]
    return asked.only or [b for b in BENCHES if asked.full or b not in LONG]


def _program(bench: str) -> str:
    """Its line in --list."""
    return f"{bench}: a program of its own"


def _unwritable(out: Path) -> str:
    """Why results cannot be written there, said before they are measured; empty if they can."""
    if out.exists() and not out.is_file():  # a device is written to as it is
        return "it is a folder" if out.is_dir() else ""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out.parent):
            return ""
    except OSError as error:
        return error.strerror or str(error)


def main() -> int:
    asked = options()
    signal.signal(signal.SIGTERM, _interrupt)
    systems, missing = available(asked.systems, asked.stock_python)
    length = "quick" if asked.quick else "full" if asked.full else "usual"
    repeats = asked.repeats or {"quick": 1, "usual": 3, "full": 5}[length]
    benches = _benches(asked)
    if asked.profile:
        cases = speed.measured(systems, asked.profile, rounds=6)
    else:
        rate = None if asked.rate is None else asked.rate * 1e6
        chosen = scaling.Asked(
            asked.nodes, rate, asked.scale, asked.models, asked.colocate, asked.slow
        )
        cases = cases_of(benches, systems, length, chosen)
    if asked.slow and cases and all(case.disturbance is None for case in cases):
        print(f"lab: no case has a host '{asked.slow.host}'", file=sys.stderr)
        return 2

    def matches(line: str) -> bool:
        return asked.match is None or any(text in line for text in asked.match)

    programs = [b for b in PROGRAMS if b in benches and matches(_program(b))]
    cases = [case for case in cases if matches(str(case))]
    cases = in_turn(cases, repeats, () if asked.repeats else ONCE)
    skipped = {name: reason for name, reason in missing.items() if wanted(name, benches)}
    for name, reason in skipped.items():
        print(f"skipped: {name}: {reason}", flush=True)
    if asked.list:
        for bench in programs:
            print(f"   ? s  {_program(bench)}")
        for case in cases:
            print(f"{case.estimate_s:4.0f} s  {case}")
        return 0
    if not cases and not programs:
        print("lab: no case is like that; --list shows those that there are", file=sys.stderr)
        return 2
    if reason := _unwritable(asked.out):
        print(f"lab: {asked.out} cannot be written: {reason}", file=sys.stderr)
        return 2
    about = {**results.circumstances(asked.stock_python), "length": length, "skipped": skipped}
    session = Session(asked.out, about)
    began = time.monotonic()
    ended = "done"
    try:
        run_programs(programs, systems, session, length, repeats)
        measure_all(cases, session)
    except KeyboardInterrupt:
        ended = "interrupted"
    if not session.rows and not session.failures:
        print(f"{ended}, and nothing was measured; {asked.out} is as it was")
        return 130 if ended == "interrupted" else 1
    session.save()
    print("\n".join(results.table(results.Results([asked.out]).rows)))
    for failure in session.failures:
        print(f"\nfailed: {failure.bench}, {failure.what}, {failure.system}\n{failure.reason}")
    print(f"\n{ended} in {(time.monotonic() - began) / 60:.1f} min; {asked.out}")
    return 130 if ended == "interrupted" else 1 if session.failed or not session.rows else 0


if __name__ == "__main__":
    sys.exit(code_of("lab", main))
