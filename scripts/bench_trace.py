"""How fast traces are read, checked and analysed, and in how much memory.

    python scripts/bench_trace.py [--records 1000000] [--long 5000000] [--out FILE]

Each measurement runs in a process of its own, so that its memory is its own.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
MEASURE = """
import json, resource, sys, time
{prepare}
cpu, wall = time.process_time(), time.perf_counter()
{work}
print(json.dumps({{
    "seconds": round(time.perf_counter() - wall, 3),
    "cpu_seconds": round(time.process_time() - cpu, 3),
    "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
}}))
"""


def measure(prepare: str, work: str) -> dict[str, Any]:
    script = MEASURE.format(prepare=prepare, work=work)
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"bench_trace: a measurement failed:\n{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def best(prepare: str, work: str, times: int = 3) -> dict[str, Any]:
    return min((measure(prepare, work) for _ in range(times)), key=lambda found: found["seconds"])


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure the reading and analysis of traces.")
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--long", type=int, default=5_000_000)
    parser.add_argument("--out", type=Path, help="also write the figures here, as JSON")
    options = parser.parse_args()
    results: dict[str, Any] = {"machine": platform.platform(), "python": platform.python_version()}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write = (
            "from tracer.synthetic import Plan, synthesize\n"
            "from tracer.synthetic.lengthen import lengthened\n"
            "from tracer.format.writer import write_trace\n"
            f"plan = Plan(iterations=4)\nfolder = {str(folder)!r}\n"
        )
        for label, records in (("short", options.records), ("long", options.long)):
            text = f"{folder}/{label}/trace_worker_0.txt"
            Path(text).parent.mkdir()
            measure(
                write,
                f"trace = lengthened(synthesize(plan)[0], {records})\n"
                f"write_trace(trace, {text!r})\nwrite_trace(trace, {text[:-4] + '.bin.dlc'!r})",
            )
            read = "from tracer.format.reader import read_trace"
            results[f"read text, {records} records"] = best(read, f"read_trace({text!r})")
            binary = text[:-4] + ".bin.dlc"
            results[f"read binary, {records} records"] = best(read, f"read_trace({binary!r})")
            analyse = (
                "from tracer.run import read_run\nfrom tracer.clocks import aligned\n"
                "from tracer.analysis import sections"
            )
            work = f"run = read_run({text!r})\ntable, _ = aligned(run)\nsections(run, table)"
            results[f"read and analyse, {records} records"] = best(analyse, work, 1)
            check = "from tracer.run import read_run\nfrom tracer.check import check_run"
            work = f"check_run(read_run({text!r}))"
            results[f"read and check, {records} records"] = best(check, work, 1)
            for path in (Path(text), Path(binary)):
                results[f"bytes of {records} records, {path.suffix[1:]}"] = path.stat().st_size
                path.unlink()
    for what, found in results.items():
        print(f"{what}: {found}")
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(results, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
