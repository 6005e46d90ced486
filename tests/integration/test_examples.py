"""The examples run as they are, and the tutorial does what it says, step by step."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster import ROOT, clean_environment, mercury

# One job for all, since a job's start takes longest: each makes a store of its own.
IN_TURN = """
import runpy, sys
for path in sys.argv[1:]:
    sys.argv = [path]
    runpy.run_path(path, run_name="__main__")
"""
LOSS_MOST = {"async": 0.1, "sparse": 0.5, "float16": 0.05, "own loop": 0.2}


def test_the_examples_of_kinds_of_training(tmp_path: Path) -> None:
    (tmp_path / "in_turn.py").write_text(IN_TURN)
    names = ("train_async", "train_sparse", "train_mixed_precision", "train_own_loop")
    paths = [str(ROOT / "examples" / f"{name}.py") for name in names]
    words = ["launch", "-n", 2, "-s", 1, "--", sys.executable, "in_turn.py", *paths]
    done = mercury(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    said = re.findall(r"(\w[\w ]*): worker (\d) has a loss of (\S+)", done.stdout)
    assert sorted((kind, rank) for kind, rank, _ in said) == sorted(
        (kind, rank) for kind in LOSS_MOST for rank in "01"
    )
    for kind, _, loss in said:
        assert float(loss) < LOSS_MOST[kind], done.stdout


def changed(script: str, diff: str) -> str:
    """A script after a diff without context: the last lines added replace those removed."""
    lines = diff.splitlines()
    at = [line[1:] for line in lines if line.startswith("-")]
    new = [line[1:] for line in lines if line.startswith("+")]
    first, replaced = new[: len(new) - len(at)], new[len(new) - len(at) :]
    for old, by in zip(at, replaced):
        assert script.count(old + "\n") == 1, old
        script = script.replace(old + "\n", by + "\n")
    begins = script.index("\nnet = ") + 1
    return script[:begins] + "".join(f"{line}\n" for line in first) + script[begins:]


def test_the_tutorial(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    text = (ROOT / "docs" / "tutorial.md").read_text()
    (script,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (diff,) = re.findall(r"```diff\n(.*?)```", text, re.DOTALL)
    train = tmp_path / "train.py"
    train.write_text(script)
    alone = subprocess.run(
        [sys.executable, "train.py"], cwd=tmp_path, env=clean_environment(), text=True,
        capture_output=True, timeout=300,
    )  # fmt: skip
    assert alone.returncode == 0, alone.stderr
    assert float(alone.stdout.split()[-1]) > 0.9
    train.write_text(changed(script, diff))
    words = ["launch", "-n", 2, "--trace-dir", "traces", "--", sys.executable, "train.py"]
    job = mercury(*words, cwd=tmp_path)
    assert job.returncode == 0, job.stdout + job.stderr
    right = [float(found) for found in re.findall(r"right: (\S+)", job.stdout)]
    assert len(right) == 2
    assert min(right) > 0.9
    live = mercury("trace", "live", "traces", cwd=tmp_path)
    assert live.returncode == 0, live.stderr
    assert live.stdout.rstrip().endswith("the job has ended")
    assert mercury("trace", "check", "traces", cwd=tmp_path).returncode == 0
    report = mercury("trace", "report", "traces", "-o", "report.html", "--quiet", cwd=tmp_path)
    assert report.returncode == 0, report.stderr
    page = (tmp_path / "report.html").read_text()
    steps = text[text.index("## 6.") : text.index("What would faster links")]
    named = [row.split("|")[1].strip() for row in steps.splitlines() if row.startswith("| ")]
    for title in {*named} - {"look at", "the same"}:
        assert title in page, title
    replayed = mercury("sim", "replay", "traces", "--bandwidth", "25Gbps", cwd=tmp_path)
    assert replayed.returncode == 0, replayed.stderr
    assert "self-check" in replayed.stdout
