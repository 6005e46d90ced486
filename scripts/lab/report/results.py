"""build/bench/results.json: what was measured, where, with what; and the table of it."""

from __future__ import annotations

import json
import os
import platform
import shlex
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from scripts.lab.benches.case import Failure, Row

ROOT = Path(__file__).resolve().parents[3]
RowFields = dict[str, Any]  # of the file's rows
# (bench, metric) -> whether more is better: what is compared with the stock systems of a run.
COMPARED = {
    ("iteration", "time"): False,
    ("communication", "time"): False,
    ("scenarios", "time"): False,
    ("peers", "time"): False,
    ("prophet", "time"): False,
    ("loopback", "goodput each way"): True,
    ("cpu", "worker processor time"): False,
    ("cpu", "server processor time"): False,
}
GAIN = " gain over "
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
            gain = other.median / row.median
            if COMPARED[row.bench, row.metric]:
                gain = 1 / gain
            metric = f"{row.metric},{GAIN}{name}"
            result.append(Row(row.bench, row.what, row.system, metric, "", row.setting, [gain]))
    order = {key: i for i, key in enumerate(dict.fromkeys(map(case_of, rows)))}
    return sorted(result, key=lambda row: (order[case_of(row)], GAIN in row.metric))


def fields_of(row: Row) -> RowFields:
    return {
        **asdict(row),
        "repeats": len(row.values),
        "median": row.median,
        "spread": row.spread,
    }


def gained_anew(rows: Iterable[RowFields]) -> list[RowFields]:
    """Of rows that come from several files: the gains are those of the figures that are left."""
    names = [field.name for field in fields(Row)]
    measured = [row for row in rows if GAIN not in row["metric"]]
    return [fields_of(r) for r in with_gains([Row(*(m[n] for n in names)) for m in measured])]


def case_of(row: Row) -> tuple[str, str, str]:
    return (row.bench, row.what, row.setting)


def write(
    path: Path,
    about: dict[str, Any],
    rows: list[Row],
    failures: list[Failure],
    series: Sequence[dict[str, Any]] = (),
) -> None:
    content = {
        **about,
        "rows": [
            {
                **fields_of(r),
                "again": _again(r, about.get("length", "usual")),
                **{name: about.get(name, "") for name in ("machine", "kernel", "commit")},
            }
            for r in with_gains(rows)
        ],
        "failures": [asdict(f) for f in failures],
        "series": list(series),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(content, indent=1) + "\n")
    draft.replace(path)


def _again(row: Row, length: str) -> str:
    line = f"python -m scripts.lab.runner --only {row.bench} --match {shlex.quote(row.what)}"
    return line if length == "usual" else f"{line} --{length}"


def number(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def table(rows: Iterable[dict[str, Any]]) -> list[str]:
    """Plain text, a heading for each case."""
    lines: list[str] = []
    heading = ""
    for row in rows:
        this = f"{row['bench']}: {row['what']} ({row['setting']})"
        if this != heading:
            heading = this
            lines += ["", heading]
        spread = f"+- {number(row['spread'] / 2)}" if row["repeats"] > 1 else ""
        figure = f"{number(row['median'])} {row['unit']}".strip()
        lines.append(f"  {row['system']:24} {row['metric']:48} {figure:>14} {spread}".rstrip())
    return lines
