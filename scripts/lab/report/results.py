"""Results files: what was measured, where, with what; and the table of it.

The runner writes build/bench/results.json. What the pages show is kept in docs/benchmarks/results.
"""

from __future__ import annotations

import json
import os
import platform
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from scripts.lab.benches.case import Failure, Row
from scripts.lab.report.series import KINDS, Points, drawn
from tracer.output import whole_file

ROOT = Path(__file__).resolve().parents[3]
Place = tuple[str, str, str]  # bench, what, setting
# (bench, metric) -> whether more is better: what is compared with the stock systems of a run.
COMPARED = {
    ("iteration", "time"): False,
    ("communication", "time"): False,
    ("mercury_paper", "time"): False,
    ("peers", "time"): False,
    ("prophet", "time"): False,
    ("loopback", "goodput each way"): True,
    ("cpu", "worker processor time"): False,
    ("cpu", "server processor time"): False,
}
GAIN = " gain over "
APART = "not by turns"  # a gain over what another run has measured
SOME_APART = "(not all by turns)"
REFERENCES = ("stock", "stock-p3")
REFERENCES_OF = {"prophet": ("mercury-bytescheduler", "mercury-mercury")}


def _output(*argv: str) -> str:
    try:
        done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def circumstances(stock_python: str | None) -> dict[str, Any]:
    version = "import importlib.metadata as m; print(m.version('mxnet'))"
    return {
        "command": f"python -m scripts.lab.runner {shlex.join(map(_short, sys.argv[1:]))}",
        "started": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()),
        "machine": f"{os.cpu_count()} x {_processor()}",
        "kernel": platform.release(),
        "python": platform.python_version(),
        "mxnet": _output(sys.executable, "-c", version),
        "stock mxnet": _output(stock_python, "-c", version) if stock_python else "",
        "commit": _output("git", "rev-parse", "--short=12", "HEAD"),
        "changed since": bool(_output("git", "status", "--porcelain")),
    }


def _short(word: str) -> str:
    path = Path(word)
    inside = path.is_absolute() and path.is_relative_to(ROOT)
    return str(path.relative_to(ROOT)) if inside else word


def quotients(above: Sequence[float], below: Sequence[float], by_turns: bool) -> list[float]:
    """Repeat by repeat of what took turns, else the medians' one."""
    if by_turns and len(above) == len(below):
        return [a / b for a, b in zip(above, below)]
    return [statistics.median(above) / statistics.median(below)]


def with_gains(rows: list[Row]) -> list[Row]:
    """The rows, and how many times better ours are than each reference in the same case."""
    found = {(r.bench, r.what, r.setting, r.metric, r.system): r for r in rows}
    result = list(rows)
    for row in rows:
        references = REFERENCES_OF.get(row.bench, REFERENCES)
        if (row.bench, row.metric) not in COMPARED or row.system in REFERENCES:
            continue
        for name in references:
            if name == row.system:
                continue
            other = found.get((row.bench, row.what, row.setting, row.metric, name))
            if other is None or min(row.median, other.median) <= 0:
                continue
            above, below = (row, other) if COMPARED[row.bench, row.metric] else (other, row)
            by_turns = row.run == other.run
            gains = quotients(above.values, below.values, by_turns)
            metric = f"{row.metric},{GAIN}{name}"
            result.append(replace(row, metric=metric, unit="", values=gains, by_turns=by_turns))
    order = {key: i for i, key in enumerate(dict.fromkeys(map(place_of, rows)))}
    return sorted(result, key=lambda row: (order[place_of(row)], GAIN in row.metric))


class Results:
    """What results files hold; the cases of later runs replace those of earlier ones."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._runs: list[tuple[set[str], dict[str, Any]]] = []  # with the benches that each ran
        rows: dict[tuple[Place, str, str], Row] = {}
        failures: dict[tuple[Place, str], Failure] = {}
        # Of a case's systems: throughput over time, the layers of one iteration, Prophet's blocks.
        self.series: dict[str, dict[Place, dict[str, Points]]] = {kind: {} for kind in KINDS}
        runs = [json.loads(path.read_text()) for path in paths]
        for run in sorted(runs, key=lambda run: str(run["started"])):
            found = [Row(**row, run=str(run["started"])) for row in run["rows"]]
            failed = [Failure(**failure) for failure in run["failures"]]
            for row in found:
                rows[place_of(row), row.system, row.metric] = row
                failures.pop((place_of(row), row.system), None)  # measured again, and well
            failures.update({(place_of(f), f.system): f for f in failed})
            for series in run["series"]:
                place = (series["bench"], series["what"], series["setting"])
                for kind in KINDS & series.keys():
                    self.series[kind].setdefault(place, {})[series["system"]] = series[kind]
            self._runs.append(({r.bench for r in found} | {f.bench for f in failed}, run))
        self.rows = with_gains(list(rows.values()))
        self.failures = list(failures.values())

    def runs(self, bench: str) -> list[dict[str, Any]]:
        return [run for benches, run in self._runs if bench in benches]


def by_case(rows: Iterable[Row]) -> dict[str, dict[str, dict[str, Row]]]:
    """By what is measured, system and metric."""
    found: dict[str, dict[str, dict[str, Row]]] = {}
    for row in rows:
        found.setdefault(row.what, {}).setdefault(row.system, {})[row.metric] = row
    return found


def place_of(row: Row | Failure) -> Place:
    return (row.bench, row.what, row.setting)


def write(
    path: Path,
    about: dict[str, Any],
    rows: list[Row],
    failures: list[Failure],
    series: Iterable[dict[str, Any]] = (),
) -> None:
    """Each row and each series in a line of its own, so that two files can be compared."""
    content: dict[str, Any] = {
        **about,
        "rows": [_stored(row) for row in rows],
        "failures": [asdict(failure) for failure in failures],
        "series": drawn(series),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    members = (f"{json.dumps(name)}: {_lined(value)}" for name, value in content.items())
    with whole_file(path) as file:
        file.write(("{" + ",\n".join(members) + "}\n").encode())


def _stored(row: Row) -> dict[str, Any]:
    return {name: of for name, of in asdict(row).items() if name not in ("run", "by_turns")}


def _lined(value: object) -> str:
    if not isinstance(value, list):
        return json.dumps(value)
    return "[" + ",\n ".join(json.dumps(one) for one in value) + "]"


def number(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def cell(row: Row | None) -> str:
    """With half the distance of its extremes."""
    if row is None:
        return ""
    spread = f" ± {number(row.spread / 2)}" if row.spread > 0 else ""
    return number(row.median) + spread + ("" if row.by_turns else f" ({APART})")


def table(rows: Iterable[Row]) -> list[str]:
    """Plain text, a heading for each case."""
    lines: list[str] = []
    heading = ""
    for row in rows:
        this = f"{row.bench}: {row.what} ({row.setting})"
        if this != heading:
            heading = this
            lines += ["", heading]
        spread = f"+- {number(row.spread / 2)}" if len(row.values) > 1 else ""
        figure = f"{number(row.median)} {row.unit}".strip()
        lines.append(f"  {row.system:24} {row.metric:48} {figure:>14} {spread}".rstrip())
    return lines
