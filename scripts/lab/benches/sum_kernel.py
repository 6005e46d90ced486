"""The server's sums against the machine's copy bandwidth; no job, one C++ program."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from scripts.lab.benches.case import Row

ROOT = Path(__file__).resolve().parents[3]
SIZE = "256 MiB"  # from memory, not from the cache


def run() -> list[Row]:
    """Raises CalledProcessError with the compiler's words."""
    figures = ROOT / "build" / "bench" / "sum_kernels.json"
    figures.parent.mkdir(parents=True, exist_ok=True)
    command = ["make", "bench-units", f"BENCH_UNITS='{SIZE}' --json '{figures}'"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    speeds = {
        figure["name"].removesuffix(SIZE).split()[-1]: float(figure["gb_per_s"])
        for figure in json.loads(figures.read_text())
    }
    what = f"sums of {SIZE}"
    rows = []
    for kind, speed in speeds.items():
        rows.append(Row("sum_kernel", what, "mercury-ps", kind, "GB/s", "one core", [speed]))
        if kind != "memcpy":
            ratio = speed / speeds["memcpy"]
            rows.append(
                Row("sum_kernel", what, "mercury-ps", f"{kind} / memcpy", "", "one core", [ratio])
            )
    return rows
