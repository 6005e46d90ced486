"""The server's sums against the machine's copy bandwidth; no job, one C++ program."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from scripts.lab.benches.case import Row

ROOT = Path(__file__).resolve().parents[3]
SIZES = ("256 MiB", "64 KiB")  # from memory, and from the cache, where packets are


def run(repeats: int) -> list[Row]:
    """Raises CalledProcessError with the compiler's words."""
    rows: dict[tuple[str, str], Row] = {}
    for _ in range(repeats):
        for size in SIZES:
            for kind, unit, figure in _figures(size):
                what = f"sums of {size}"
                made = Row("sum_kernel", what, "mercury-ps", kind, unit, "one core", [])
                rows.setdefault((size, kind), made).values.append(figure)
    return [*rows.values()]


def _figures(size: str) -> list[tuple[str, str, float]]:
    figures = ROOT / "build" / "bench" / "sum_kernels.json"
    figures.parent.mkdir(parents=True, exist_ok=True)
    command = ["make", "bench-units", f"BENCH_UNITS='{size}' --json '{figures}'"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    speeds = {
        figure["name"].removesuffix(size).split()[-1]: float(figure["gb_per_s"])
        for figure in json.loads(figures.read_text())
        if figure["name"].startswith(("memcpy", "add"))  # other units have this size, too
    }
    found = []
    for kind, speed in speeds.items():
        found.append((kind, "GB/s", speed))
        if kind != "memcpy":
            found.append((f"{kind} / memcpy", "", speed / speeds["memcpy"]))
    return found
