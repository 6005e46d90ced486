"""Writes docs/benchmarks.md from the runner's results.

    python -m scripts.lab.report.page [RESULTS ...] [--out FILE]

Of several files, the later ones' cases replace the earlier ones'. Benches that none of them holds
stay on the page as they are; of the others, only what the files hold is there afterwards.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from scripts.lab.report import fabric_tables, prophet_tables
from scripts.lab.report.ddp_table import against_ddp
from scripts.lab.report.pictures import Pictures, Place
from scripts.lab.report.results import RowFields, gained_anew, number
from scripts.lab.report.scaling_table import by_hosts

ROOT = Path(__file__).resolve().parents[3]

HEADINGS = {
    "scaling": "More and more hosts",
    "torch": "PyTorch, beside DistributedDataParallel",
    "turns": "PyTorch on one machine, by turns with DistributedDataParallel",
    "fabric": "MLfabric, beside a ring, a tree and plain asynchronous training",
    "iteration": "Iterations with an emulated GPU",
    "communication": "Communication alone",
    "goodput": "How full the link gets",
    "urgent": "An urgent tensor among bulk",
    "cpu": "Processor time",
    "loopback": "Not shaped, on one machine",
    "idle": "Doing nothing",
    "adapt": "A link that changes",
    "sweep": "Sizes of packets and partitions, credit",
    "scenarios": "Networks that change, are uneven, or grow",
    "prophet": "Prophet, and what it was measured against",
    "peers": "Beside systems without servers",
    "soak": "Long runs, many tensors, many processes, a huge tensor",
    "joining": "Many nodes find each other",
    "sum_kernel": "Sums",
}
METHOD = Path(__file__).resolve().parent / "method.md"  # the page's opening, and its end


class Results:
    """One or more results files; later ones replace the cases of earlier ones."""

    def __init__(self, paths: list[Path]) -> None:
        self._abouts: list[tuple[set[str], dict[str, Any]]] = []  # with the benches that it ran
        rows: dict[tuple[str, ...], RowFields] = {}
        failures: dict[tuple[str, ...], RowFields] = {}
        # Of a case's systems: throughput over time, the layers of one iteration, Prophet's blocks.
        self.series: dict[str, dict[Place, dict[str, list[list[float]]]]] = {
            kind: {} for kind in ("throughput", "timeline", "blocks")
        }
        for path in paths:
            content = json.loads(path.read_text())
            benches = {row["bench"] for row in (*content["rows"], *content["failures"])}
            for row in content.pop("rows"):
                rows[(*_place(row), row["system"], row["metric"])] = row
                failures.pop((*_place(row), row["system"]), None)  # measured again, and well
            for failure in content.pop("failures"):
                failures[(*_place(failure), failure["system"])] = failure
            for series in content.pop("series", ()):
                for kind, known in self.series.items():
                    if series.get(kind):
                        known.setdefault(_place(series), {})[series["system"]] = series[kind]
            self._abouts.append((benches, content))
        self.rows = gained_anew(rows.values())
        self.failures = list(failures.values())

    def abouts(self, bench: str) -> list[dict[str, Any]]:
        return [about for benches, about in self._abouts if bench in benches]


def _place(row: RowFields) -> Place:
    return (row["bench"], row["what"], row["setting"])


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


def _foretold(rows: list[RowFields]) -> list[str]:
    """The model's predictions beside what was measured."""
    metrics = ("predicted time", "time", "predicted / measured")
    found: dict[tuple[str, str], dict[str, RowFields]] = {}
    for row in rows:
        found.setdefault((row["what"], row["system"]), {})[row["metric"]] = row
    lines = [
        f"| {what} | {system} | " + " | ".join(_cell(of.get(m)) for m in metrics) + " |"
        for (what, system), of in found.items()
        if metrics[0] in of
    ]
    if not lines:
        return []
    head = "| model | system | predicted [s] | measured [s] | predicted / measured |"
    intro = "What the model foretells (`scripts/lab/benches/prediction.py`), nothing fitted:"
    return ["", intro, "", head, "|---" * 5 + "|", *lines]


def _measured_by(abouts: list[dict[str, Any]]) -> list[str]:
    lines = [""]
    for about in abouts:
        state = " with changes" if about["changed since"] else ""
        lines.append(
            f"- `{about['command']}`, {about['started']}, commit {about['commit']}{state}; "
            f"{about['machine']}, Linux {about['kernel']}, Python {about['python']}, "
            f"MXNet {about['mxnet']} and stock {about['stock mxnet'] or 'none'}"
        )
        for name, reason in about.get("skipped", {}).items():
            lines.append(f"  - skipped: {name}: {reason}")
    return lines


def sections(page: str) -> dict[str, str]:
    """By heading, what is below it."""
    parts = re.split(r"^## (.+)\n", page, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def markdown(results: Results, folder: Path, known: Mapping[str, str] | None = None) -> str:
    """The page; its charts go into `folder`, which lies beside it.

    `known`: the sections that there are, for benches that have not been run.
    """
    pictures = Pictures(folder)
    # Of all cases of a bench together.
    summaries: dict[str, list[Callable[[list[RowFields]], list[str]]]] = {
        "iteration": [pictures.speed, _foretold],
        "peers": [pictures.speed],
        "prophet": [prophet_tables.by_rate, pictures.rates],
        "scenarios": [pictures.growth],
        "sweep": [pictures.sweep],
    }
    of_a_case = {
        "throughput": pictures.throughput,
        "timeline": pictures.timeline,
        "blocks": pictures.blocks,
    }
    opening, _, method = METHOD.read_text().partition("\n## ")
    lines = [opening.rstrip("\n")]
    for bench, heading in HEADINGS.items():
        of_bench = [row for row in results.rows if row["bench"] == bench]
        failed = [f for f in results.failures if f["bench"] == bench]
        if not of_bench and not failed:
            if known is not None and heading in known:
                lines += ["", f"## {heading}", known[heading].rstrip("\n")]
            continue
        lines += ["", f"## {heading}", *_measured_by(results.abouts(bench))]
        if bench in ("scaling", "torch"):
            lines += pictures.scaling(bench, of_bench) + by_hosts(of_bench)
        if bench == "torch":
            lines += against_ddp(of_bench)
        if bench == "fabric":
            lines += fabric_tables.by_cell(of_bench) + fabric_tables.foretold(of_bench)
            lines += fabric_tables.sampling(of_bench) + fabric_tables.by_race(of_bench)
        of_bench.sort(key=_place)
        for place, group in itertools.groupby(of_bench, key=_place):
            if bench != "fabric" and prophet_tables.rated(place[1]) is None:
                lines += _case(list(group))
            for kind, draw in of_a_case.items():
                if place in results.series[kind] and (kind != "timeline" or bench == "iteration"):
                    lines += draw(place, results.series[kind][place])
        for summary in summaries.get(bench, ()):
            lines += summary(of_bench)
        lines += [""] if failed else []
        for failure in failed:
            reason = failure["reason"].splitlines()[0]
            case = f"{failure['system']}, {failure['what']}; {failure['setting']}"
            lines.append(f"- failed: {case}: {reason}")
    lines += ["", f"## {method}".rstrip("\n")]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    usual = ROOT / "build" / "bench" / "results.json"
    parser.add_argument("results", nargs="*", type=Path, default=[usual])
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "benchmarks.md")
    asked = parser.parse_args()
    known = sections(asked.out.read_text()) if asked.out.exists() else {}
    page = markdown(Results(asked.results), asked.out.with_suffix(""), known)
    asked.out.write_text(page)
    print(asked.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
