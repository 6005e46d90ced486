"""`make fuzz`: runs the fuzz targets, two at a time, for a share of the time each.

Usage: python -m scripts.fuzz BUILD_FOLDER SECONDS TARGET...; exit code 1 if one found something.
What an engine finds to be new grows a corpus under BUILD_FOLDER, so that a later run goes on.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
AT_ONCE = 2


def fuzz(build: Path, target: str, seconds: int) -> tuple[str, int, str]:
    """The target, its exit code, and the engine's last words."""
    known = ROOT / "tests" / "fuzz" / "corpus" / target.removesuffix("_fuzz")
    found = build / "corpus" / target
    crashes = build / "crashes" / target
    for folder in (found, crashes):
        folder.mkdir(parents=True, exist_ok=True)
    engine = [f"-max_total_time={seconds}", "-timeout=10", "-rss_limit_mb=2048"]
    command = [build / target, found, known, *engine, f"-artifact_prefix={crashes}/"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    lines = done.stderr.strip().splitlines()
    if done.returncode:
        return target, done.returncode, "\n".join(lines[-40:])
    return target, 0, next((line for line in reversed(lines) if line.startswith("Done")), "")


def main(arguments: Sequence[str]) -> int:
    build, seconds, targets = Path(arguments[0]), int(arguments[1]), arguments[2:]
    each = max(1, seconds * AT_ONCE // len(targets))
    failed = 0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for target, code, says in pool.map(lambda name: fuzz(build, name, each), targets):
            print(f"{target}: {f'found something ({code})' if code else 'nothing found'}. {says}")
            failed += code != 0
    print(f"{len(targets)} targets, {each} s each: {failed} with a finding")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
