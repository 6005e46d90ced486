"""What a process that multiprocessing has started ends of, with every Python that is here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster import ROOT

SCRIPT = """
import multiprocessing, sys
from pslite_ext.job import spawned

def work(kind):
    if spawned.ends_as_others_do():
        print(f"{kind}: like a script", flush=True)
    else:
        def say(reason, error):
            print(f"{kind}: {reason or 'well'}", flush=True)
            raise RuntimeError("of the listener's own")
        spawned.at_end(say, lambda error: f"it raised {error}")
    if kind == "error":
        raise ValueError("mine")
    sys.exit({"none": None, "zero": 0, "three": 3}[kind])

if __name__ == "__main__":
    sys.stderr = open("/dev/null", "w")
    assert spawned.ends_as_others_do()
    for kind in ("none", "zero", "three", "error"):
        process = multiprocessing.get_context(sys.argv[1]).Process(target=work, args=(kind,))
        process.start()
        process.join()
        print("exit code", process.exitcode, flush=True)
"""


def chosen(python: str) -> dict[str, str]:
    """For pyenv, which may have a Python that it does not offer by itself."""
    return {"PYENV_VERSION": Path(python).name[len("python") :]}


def said(python: str, how: str, folder: Path) -> list[str]:
    script = folder / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [python, str(script), how],
        env={**os.environ, "PYTHONPATH": str(ROOT), **chosen(python)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def check(python: str, how: str, newer: bool, folder: Path) -> None:
    lines = said(python, how, folder)
    assert lines[1::2] == ["exit code 0", "exit code 0", "exit code 3", "exit code 1"]
    if newer and how == "spawn":
        assert all(line.endswith("like a script") for line in lines[::2])
        return
    error = "it ended with exit code 1" if newer else "it raised mine"
    assert lines[::2] == [
        "none: well",
        "zero: well",
        "three: it ended with exit code 3",
        f"error: {error}",
    ]


HOW = ("fork", "spawn", "forkserver")


@pytest.mark.parametrize("how", HOW)
def test_this_python(how: str, tmp_path: Path) -> None:
    check(sys.executable, how, sys.version_info >= (3, 13), tmp_path)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("name", ["python3.13", "python3.14"])
def test_a_newer_one(name: str, how: str, tmp_path: Path) -> None:
    python = shutil.which(name)
    if python is not None:
        env = {**os.environ, **chosen(python)}
        if subprocess.run([python, "-c", ""], env=env, capture_output=True).returncode == 0:
            return check(python, how, True, tmp_path)
    pytest.skip(f"there is no {name} here")
