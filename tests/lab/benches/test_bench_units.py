"""`make bench-units`: figures, kept in a file, and held against that file."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from scripts.lab.benches import sum_kernel
from tests.cluster import ROOT

pytestmark = pytest.mark.xdist_group("bench units")  # who builds it finds nobody running it


def bench_units(arguments: str) -> subprocess.CompletedProcess[str]:
    # Under a make of its own, this one would say where it has been, after the table.
    command = ["make", "--no-print-directory", "bench-units", f"BENCH_UNITS={arguments}"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def test_figures_are_kept_and_compared(tmp_path: Path) -> None:
    kept = tmp_path / "before.json"
    first = bench_units(f"crc32c queue aggregator --json '{kept}'")
    assert first.returncode == 0, first.stderr
    figures = json.loads(kept.read_text())
    names = [figure["name"] for figure in figures]
    packets = ["aggregator 1 KiB", "aggregator 64 KiB"]
    assert names == ["crc32c 1 KiB", "crc32c 64 KiB", *packets, "urgency queue push, pop"]
    assert all(figure["ns"] > 0 and figure["gb_per_s"] > 0 for figure in figures)

    for figure in figures:
        figure["ns"] = 1e6  # so slow was none
    kept.write_text("[\n " + ",\n ".join(map(json.dumps, figures)) + "\n]\n")
    second = bench_units(f"'crc32c 1 KiB' --against '{kept}'")
    assert second.returncode == 0, second.stderr
    last = second.stdout.splitlines()[-1]
    assert last.startswith("crc32c 1 KiB ")
    found = re.search(r"([\d.]+)$", last)
    assert found
    assert float(found[1]) > 1000


def test_what_cannot_be_done_is_an_error() -> None:
    for wrong in ("crc32c --against /nowhere", "crc32c --json", "no-such-unit"):
        assert bench_units(wrong).returncode != 0


def test_the_lab_s_bench_of_sums() -> None:
    rows = sum_kernel.run(repeats=1)
    kinds = {row.metric for row in rows}
    assert {"memcpy", "float32", "float32 / memcpy", "bfloat16"} <= kinds
    assert len(rows) == len(sum_kernel.SIZES) * len(kinds)
    assert all(len(row.values) == 1 for row in rows)
