"""Each of dist/'s wheels in a fresh environment of its Python, and README's example in it.

    python -m scripts.try_wheels [PYTHON ...]

For every Python (default: this one): a new virtual environment, `pip install` as README has it with
that Python's wheel, `pip check`, and README's script under `mercury launch` with two workers and
one server. A line for each; ends with 1 if one fails.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TAG = "import sys; print('cp%d%d' % sys.version_info[:2])"
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


def readme_script(readme: str) -> str:
    (script,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    return str(script)


def learnt(output: str) -> int:
    """How many workers say that they have found README's line."""
    found = re.findall(r"worker \d learnt \[\[ *(\S+) +(\S+)\]\] \[(\S+)\]", output)
    wanted = (2.0, -3.4, 4.2)
    return sum(all(abs(float(x) - y) < 0.05 for x, y in zip(line, wanted)) for line in found)


def attempt(python: str, dist: Path) -> str:
    readme = (ROOT / "README.md").read_text()
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        tag = run(python, "-c", TAG, cwd=here).strip()
        wheels = [
            the_wheel(f"mercury_ps-*-{tag}-*.whl", dist),
            the_wheel("mxnet-1.9.1+*.whl", dist),
        ]
        run(python, "-m", "venv", "env", cwd=here)
        inside = here / "env" / "bin"
        pip = (inside / "python", "-m", "pip", "--disable-pip-version-check", "--quiet")
        run(*pip, "install", *wheels, cwd=here)
        run(*pip, "check", cwd=here)
        (here / "train.py").write_text(readme_script(readme))
        began = time.monotonic()
        job = ("launch", "-n", "2", "-s", "1", "--", inside / "python", "train.py")
        output = run(inside / "mercury", *job, cwd=here)
        seconds = time.monotonic() - began
        if learnt(output) != 2:
            raise Failed(f"two workers should have learnt the line:\n{output}")
        return f"{wheels[0].name}: installed; two workers learnt README's line in {seconds:.0f} s"


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
