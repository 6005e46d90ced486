"""Each of dist/'s wheels in a fresh environment of its Python, and README's example in it.

    python -m scripts.try_wheels [PYTHON ...]

For every Python (default: this one): a new virtual environment, `pip install` as README has it with
that Python's wheel, `pip check`, and README's script under `mercury launch` with two workers and
one server. A Python that MXNet is too old for gets our wheel and NumPy alone, and the script of
docs/fabric.md. A line for each; ends with 1 if one fails.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pslite_ext.command.doctor import MXNET_PYTHON_MOST

ROOT = Path(__file__).resolve().parent.parent
VERSION = "import sys; print(*sys.version_info[:2])"
LIMIT_S = 300


class Failed(Exception):
    """A step did not work; its last lines."""


def run(*words: str | Path, cwd: Path) -> str:
    argv = [str(word) for word in words]
    try:
        done = subprocess.run(
            argv,
            cwd=cwd,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT_S,
        )
    except FileNotFoundError:
        raise Failed(f"{argv[0]} is not there: put it on PATH") from None
    except subprocess.TimeoutExpired:
        raise Failed(f"{' '.join(argv)}: not done after {LIMIT_S} s") from None
    if done.returncode != 0:
        last = "\n".join(done.stdout.splitlines()[-5:])
        raise Failed(f"{' '.join(argv)}: exit code {done.returncode}\n{last}")
    return done.stdout


def the_wheel(pattern: str, dist: Path) -> Path:
    found = sorted(dist.glob(pattern))
    if len(found) != 1:
        raise Failed(f"{dist} has {len(found)} wheels like {pattern}, not one: run `make wheels`")
    return found[0]


@dataclass(frozen=True)
class Example:
    """What is tried with a wheel: the first script of a page, and who of its job has learnt."""

    page: str
    wheels: tuple[str, ...]  # beside ours, by pattern
    packages: tuple[str, ...]
    nodes: tuple[str, ...]
    workers: int
    learnt: Callable[[str], int]

    def script(self) -> str:
        scripts = re.findall(r"```python\n(.*?)```", (ROOT / self.page).read_text(), re.DOTALL)
        return str(scripts[0])


def found_the_line(output: str) -> int:
    """How many workers say that they have found README's line."""
    found = re.findall(r"worker \d learnt \[\[ *(\S+) +(\S+)\]\] \[(\S+)\]", output)
    wanted = (2.0, -3.4, 4.2)
    return sum(all(abs(float(x) - y) < 0.05 for x, y in zip(line, wanted)) for line in found)


def found_the_model(output: str) -> int:
    """How many say that they are near docs/fabric.md's true model, which is about 10 long."""
    return sum(float(off) < 1 for off in re.findall(r"off by (\S+);", output))


WITH_MXNET = Example(
    "README.md", ("mxnet-1.9.1+*.whl",), (), ("-n", "2", "-s", "1"), 2, found_the_line
)
WITH_NUMPY = Example(
    "docs/fabric.md", (), ("numpy",), ("-n", "4", "-s", "1", "--replicas", "1"), 4, found_the_model
)


def attempt(python: str, dist: Path) -> str:
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        version = tuple(int(n) for n in run(python, "-c", VERSION, cwd=here).split())
        example = WITH_NUMPY if version > MXNET_PYTHON_MOST else WITH_MXNET
        ours = the_wheel("mercury_ps-*-cp{}{}-*.whl".format(*version), dist)
        others = [the_wheel(pattern, dist) for pattern in example.wheels]
        run(python, "-m", "venv", "env", cwd=here)
        inside = here / "env" / "bin"
        pip = (inside / "python", "-m", "pip", "--disable-pip-version-check", "--quiet")
        run(*pip, "install", ours, *others, *example.packages, cwd=here)
        run(*pip, "check", cwd=here)
        (here / "train.py").write_text(example.script())
        began = time.monotonic()
        job = ("launch", *example.nodes, "--", str(inside / "python"), "train.py")
        output = run(inside / "mercury", *job, cwd=here)
        seconds = time.monotonic() - began
        if example.learnt(output) != example.workers:
            raise Failed(f"{example.workers} workers should have learnt:\n{output}")
        job_text = f"{example.workers} workers learnt with {example.page}'s script"
        return f"{ours.name}: installed; {job_text} in {seconds:.0f} s"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("python", nargs="*", default=[sys.executable], metavar="PYTHON")
    parser.add_argument("--dist", type=Path, default=ROOT / "dist")
    asked = parser.parse_args()
    failed = False
    for python in asked.python:
        try:
            said = attempt(python, asked.dist.resolve())
        except Failed as reason:
            failed = True
            said = f"failed: {reason}"
        print(f"{python}: {said}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
