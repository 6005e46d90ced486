#!/usr/bin/env python3
"""Writes docs/benchmarks.md from the runner's results: report.py [RESULTS ...] [--out FILE].

Of several files, the later ones' cases replace the earlier ones'.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).resolve().parent))
from chart import line_chart  # noqa: E402
from results import number  # noqa: E402

RowFields = dict[str, Any]
Place = tuple[str, str, str]
BIN_S = 0.25  # of a chart's points
HEADINGS = {
    "iteration": "Iterations with an emulated GPU",
    "communication": "Communication alone",
    "goodput": "How full the link gets",
    "urgent": "An urgent tensor among bulk",
    "cpu": "Processor time",
    "loopback": "Not shaped, on one machine",
    "idle": "Doing nothing",
    "scenarios": "Networks that change, are uneven, or grow",
    "peers": "Beside systems without servers",
    "soak": "Long runs, many tensors, many processes, a huge tensor",
    "sum_kernel": "Sums",
}
METHOD = Path(__file__).resolve().parent / "method.md"  # the page's opening


class Results:
    """One or more results files; later ones replace the cases of earlier ones."""

    def __init__(self, paths: list[Path]) -> None:
        self.abouts: list[dict[str, Any]] = []
        rows: dict[tuple[str, ...], RowFields] = {}
        failures: dict[tuple[str, ...], RowFields] = {}
        self.series: dict[Place, dict[str, list[list[float]]]] = {}
        for path in paths:
            content = json.loads(path.read_text())
            for row in content.pop("rows"):
                rows[(*_place(row), row["system"], row["metric"])] = row
            for failure in content.pop("failures"):
                failures[(failure["bench"], failure["what"], failure["system"])] = failure
            for series in content.pop("series", ()):
                of_case = self.series.setdefault(_place(series), {})
                of_case[series["system"]] = series["throughput"]
            self.abouts.append(content)
        self.rows = list(rows.values())
        measured = {(bench, what, system) for bench, what, _, system, _ in rows}
        self.failures = [f for key, f in failures.items() if key not in measured]


def _place(row: RowFields) -> Place:
    return (row["bench"], row["what"], row["setting"])


def _binned(series: list[list[float]], column: int) -> list[tuple[float, float]]:
    """Mbit/s, averaged over BIN_S."""
    bins: dict[int, list[float]] = {}
    for point in series:
        bins.setdefault(int(point[0] / BIN_S), []).append(point[column] / 1e6)
    return [(BIN_S * (i + 0.5), sum(v) / len(v)) for i, v in sorted(bins.items())]


def _charts(place: Place, systems: dict[str, list[list[float]]], folder: Path) -> list[str]:
    """Writes a chart for each direction; the lines that show them."""
    lines = []
    for column, way in ((1, "sent"), (2, "received")):
        title = f"{place[1]}: {way} by worker 0"
        drawn = {name: _binned(series, column) for name, series in systems.items()}
        name = re.sub(r"[^a-z0-9]+", "_", f"{place[0]} {place[1]} {way}".lower()).strip("_")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.svg").write_text(line_chart(title, "seconds", "Mbit/s", drawn))
        lines += ["", f"![{title}]({folder.name}/{name}.svg)"]
    return lines


def _cell(row: RowFields | None) -> str:
    if row is None:
        return ""
    text = number(row["median"])
    if row["spread"] > 0:
        text += f" ± {number(row['spread'] / 2)}"
    return text


def _case(rows: list[RowFields]) -> list[str]:
    """One table: a line for each system, a column for each metric."""
    columns = {row["metric"]: row["unit"] for row in rows}
    heads = [f"{metric} [{unit}]" if unit else metric for metric, unit in columns.items()]
    lines = ["", f"{rows[0]['what']}; {rows[0]['setting']}; {_repeats(rows)}:", ""]
    lines += ["| system | " + " | ".join(heads) + " |", "|---" * (1 + len(heads)) + "|"]
    for system in dict.fromkeys(row["system"] for row in rows):
        found = {row["metric"]: row for row in rows if row["system"] == system}
        lines.append(f"| {system} | " + " | ".join(_cell(found.get(m)) for m in columns) + " |")
    return lines


def _repeats(rows: list[RowFields]) -> str:
    most = max(row["repeats"] for row in rows)
    return "once" if most == 1 else f"{most} repeats"


def markdown(results: Results, folder: Path) -> str:
    """The page; its charts go into `folder`, which lies beside it."""
    lines = [METHOD.read_text()]
    for about in results.abouts:
        state = " with changes" if about["changed since"] else ""
        lines.append(
            f"- `{about['command']}`, {about['started']}, commit {about['commit']}{state}; "
            f"{about['machine']}, Linux {about['kernel']}, Python {about['python']}, "
            f"MXNet {about['mxnet']} and stock {about['stock mxnet'] or 'none'}"
        )
        for name, reason in about.get("skipped", {}).items():
            lines.append(f"  - skipped: {name}: {reason}")
    for bench, heading in HEADINGS.items():
        of_bench = [row for row in results.rows if row["bench"] == bench]
        failed = [f for f in results.failures if f["bench"] == bench]
        if not of_bench and not failed:
            continue
        lines += ["", f"## {heading}"]
        of_bench.sort(key=_place)
        for place, group in itertools.groupby(of_bench, key=_place):
            lines += _case(list(group))
            if place in results.series:
                lines += _charts(place, results.series[place], folder)
        lines += [""] if failed else []
        for failure in failed:
            reason = failure["reason"].splitlines()[0]
            lines.append(f"- failed: {failure['system']}, {failure['what']}: {reason}")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    usual = ROOT / "build" / "bench" / "results.json"
    parser.add_argument("results", nargs="*", type=Path, default=[usual])
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "benchmarks.md")
    asked = parser.parse_args()
    page = markdown(Results(asked.results), asked.out.with_suffix(""))
    asked.out.write_text(page)
    print(asked.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
