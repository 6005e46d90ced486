"""How often does the same training end with the same weights? Stock MXNet and ours, run in turn.

Both train LeNet-5 on digits with 2 workers and 2 servers, seeds fixed. A run is right if both
workers hold the same weights and these are the most frequent ones of all runs of its system.
"""

from __future__ import annotations

import argparse
import collections
import platform
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.cluster import cluster
from tracer.output import write_json

ROOT = Path(__file__).resolve().parents[2]

SCRIPT = ROOT / "examples" / "train_lenet.py"


def train(python: str, van: str | None, arguments: list[str]) -> tuple[str, ...]:
    """The weights' digests, one for each worker."""
    with cluster([str(SCRIPT), *arguments], van=van, python=python) as job:
        job.wait(300)
        return tuple(
            found[1] if (found := re.search(r"weights ([0-9a-f]+)", w.output)) else "failed"
            for w in job.workers
        )


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10, help="of each system")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--update-on-kvstore", default="0", choices=["0", "1"])
    parser.add_argument("--stock-python", help="Python of an environment with the stock wheel")
    parser.add_argument(
        "--out", type=Path, default=ROOT / "build" / "bench" / "repeat_training.json"
    )
    options = parser.parse_args(argv)
    if options.runs < 1 or options.steps < 1:
        parser.error("at least one run and one step")
    arguments = ["--steps", str(options.steps), "--update-on-kvstore", options.update_on_kvstore]
    systems: dict[str, tuple[str, str | None]] = {"mercury-ps zmq": (sys.executable, "zmq")}
    if options.stock_python:
        systems["stock dist_sync"] = (options.stock_python, None)
    results: dict[str, list[tuple[str, ...]]] = {name: [] for name in systems}
    for run in range(options.runs):
        for name, (python, van) in systems.items():
            results[name].append(train(python, van, arguments))
            print(f"run {run + 1} of {options.runs}: {name:16} {results[name][-1]}", flush=True)
    table = {}
    for name, digests in results.items():
        usual, right = collections.Counter(digests).most_common(1)[0]
        if len(set(usual)) != 1:
            right = 0
        table[name] = {"runs": len(digests), "right": right, "weights": digests}
        print(f"{name}: {right} of {len(digests)} runs ended with the same weights on both workers")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    about = {"command": sys.argv, "machine": platform.platform()}
    write_json(options.out, {**about, "systems": table})
    return 0


if __name__ == "__main__":
    sys.exit(main())
