"""The examples run as they are, and the tutorial does what it says, step by step."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from pslite_ext.command.sim.command import main as sim_command
from pslite_ext.command.trace.command import main as trace_command
from tests.cluster import ROOT, clean_environment, mercury
from tracer.analysis import sections
from tracer.clocks import aligned
from tracer.report import overview
from tracer.run import read_run

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


def test_the_tutorial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
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
    monkeypatch.chdir(tmp_path)
    assert trace_command(["live", "traces"]) == 0
    assert capsys.readouterr().out.rstrip().endswith("the job has ended")
    assert trace_command(["check", "traces", "--quiet"]) == 0
    # The report is drawn elsewhere; here, what the tutorial says of it is there.
    run = read_run("traces")
    shown = (ROOT / "tracer" / "report" / "page.py").read_text() + overview.TITLE
    shown += " ".join(section.title for section in sections(run, aligned(run)[0]))
    steps = text[text.index("## 6.") : text.index("What would faster links")]
    named = [row.split("|")[1].strip() for row in steps.splitlines() if row.startswith("| ")]
    for title in {*named} - {"look at", "the same"}:
        assert title in shown, title
    assert sim_command(["replay", "traces", "--bandwidth", "25Gbps", "--quiet"]) == 0
    assert "self-check" in capsys.readouterr().out
