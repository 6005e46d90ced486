#!/usr/bin/env python3
"""Writes docs/benchmarks.md from the runner's results: report.py [RESULTS ...] [--out FILE].

Of several files, the later ones' cases replace the earlier ones'.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).resolve().parent))
from results import number  # noqa: E402

RowFields = dict[str, Any]
HEADINGS = {
    "iteration": "Iterations with an emulated GPU",
    "communication": "Communication alone",
    "goodput": "How full the link gets",
    "urgent": "An urgent tensor among bulk",
    "cpu": "Processor time",
    "loopback": "Not shaped, on one machine",
    "idle": "Doing nothing",
    "scenarios": "Networks that change, are uneven, or grow",
    "soak": "Long runs, many tensors, many processes, a huge tensor",
    "sum_kernel": "Sums",
}
METHOD = Path(__file__).resolve().parent / "method.md"  # the page's opening


def merged(paths: list[Path]) -> tuple[list[dict[str, Any]], list[RowFields], list[RowFields]]:
    abouts, rows, failures = [], {}, {}
    for path in paths:
        content = json.loads(path.read_text())
        for row in content.pop("rows"):
            key = (row["bench"], row["what"], row["setting"], row["system"], row["metric"])
            rows[key] = row
        for failure in content.pop("failures"):
            failures[(failure["bench"], failure["what"], failure["system"])] = failure
        abouts.append(content)
    measured = {(bench, what, system) for bench, what, _, system, _ in rows}
    return abouts, list(rows.values()), [f for k, f in failures.items() if k not in measured]


def _cell(row: RowFields | None) -> str:
    if row is None:
        return ""
    text = number(row["median"])
    if row["repeats"] > 1:
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


def markdown(abouts: list[dict[str, Any]], rows: list[RowFields], failures: list[RowFields]) -> str:
    lines = [METHOD.read_text()]
    for about in abouts:
        state = " with changes" if about["changed since"] else ""
        lines.append(
            f"- `{about['command']}`, {about['started']}, commit {about['commit']}{state}; "
            f"{about['machine']}, Linux {about['kernel']}, Python {about['python']}, "
            f"MXNet {about['mxnet']} and stock {about['stock mxnet'] or 'none'}"
        )
    for bench, heading in HEADINGS.items():
        of_bench = [row for row in rows if row["bench"] == bench]
        failed = [f for f in failures if f["bench"] == bench]
        if not of_bench and not failed:
            continue
        lines += ["", f"## {heading}"]
        of_bench.sort(key=lambda row: (row["what"], row["setting"]))
        for _, group in itertools.groupby(of_bench, key=lambda row: (row["what"], row["setting"])):
            lines += _case(list(group))
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
    asked.out.write_text(markdown(*merged(asked.results)))
    print(asked.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
