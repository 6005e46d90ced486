"""The server's sums against the machine's copy bandwidth; no job, one C++ program."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from scripts.lab.benches.case import Row

ROOT = Path(__file__).resolve().parents[3]
SIZE = 256  # MB: from memory, not from the cache


def run() -> list[Row]:
    """Best of the instruction sets; raises CalledProcessError with the compiler's words."""
    program = ROOT / "build" / "bench" / "sum_kernels"
    program.parent.mkdir(parents=True, exist_ok=True)
    sources = ["tests/cpp/sums/bench_sum_kernels.cc", "pslite_ext/csrc/sums/sum_kernels.cc"]
    compiler = ["c++", "-O3", "-std=c++17", "-Ipslite_ext/csrc", *sources, "-o", str(program)]
    subprocess.run(compiler, cwd=ROOT, check=True, capture_output=True, text=True)
    output = subprocess.run(
        [str(program), str(SIZE)], check=True, capture_output=True, text=True
    ).stdout
    speeds = {}
    for line in output.splitlines():
        words = line.split()
        speeds[words[2]] = max(map(float, re.findall(r"([\d.]+) GB/s", line)))
    what = f"sums of {SIZE} MB"
    rows = []
    for kind, speed in speeds.items():
        rows.append(Row("sum_kernel", what, "mercury-ps", kind, "GB/s", "one core", [speed]))
        if kind != "memcpy":
            ratio = speed / speeds["memcpy"]
            rows.append(
                Row("sum_kernel", what, "mercury-ps", f"{kind} / memcpy", "", "one core", [ratio])
            )
    return rows
