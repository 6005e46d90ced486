#!/usr/bin/env python3
"""LeNet-5 on digits with 2 workers and 2 servers on this machine, through `mercury launch`."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

SCRIPT = Path(__file__).resolve().parent.parent / "examples" / "train_lenet.py"
# As installed beside this Python: `-m` would find the packages of the tree.
MERCURY = str(Path(sys.executable).with_name("mercury"))
ACCURACY_MIN = 0.95
TRACES = Path("build/demo-traces")


def main() -> int:
    started = time.monotonic()
    shutil.rmtree(TRACES, ignore_errors=True)
    launch = [MERCURY, "launch", "-n", "2", "-s", "2", "--log-dir", "build/demo-logs"]
    launch += ["--trace-dir", str(TRACES), "--", sys.executable, str(SCRIPT), "--epochs", "8"]
    job = subprocess.Popen(launch, stdout=subprocess.PIPE, text=True)
    assert job.stdout is not None
    results: list[tuple[float, str]] = []
    try:
        for line in job.stdout:
            print(line, end="", flush=True)
            if found := re.search(r"accuracy ([\d.]+) weights ([0-9a-f]+)", line):
                results.append((float(found[1]), found[2]))
        code = job.wait()
    except KeyboardInterrupt:
        job.terminate()
        job.wait()
        return 130
    if code != 0:
        print(f"demo: the job failed with exit code {code}", file=sys.stderr)
        return code
    if len(results) != 2 or len({weights for _, weights in results}) != 1:
        print(f"demo: the workers' weights differ: {results}", file=sys.stderr)
        return 1
    accuracy = results[0][0]
    seconds = time.monotonic() - started
    print(f"demo: accuracy {accuracy:.1%}, both workers hold the same weights, {seconds:.0f} s")
    if accuracy < ACCURACY_MIN:
        print(f"demo: less than {ACCURACY_MIN:.0%} is too little", file=sys.stderr)
        return 1
    return show_traces()


def show_traces() -> int:
    """Checks what the nodes have recorded, and makes a page of it."""
    report = TRACES / "report.html"
    for words in (["check", str(TRACES)], ["report", str(TRACES), "-o", str(report)]):
        code = subprocess.run([MERCURY, "trace", *words]).returncode
        if code != 0:
            print(f"demo: mercury trace {words[0]} ended with {code}", file=sys.stderr)
            return code
    print(f"demo: where the time went: {report.absolute()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
