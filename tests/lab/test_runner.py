"""The bench's command line."""

from __future__ import annotations

import subprocess
import sys

from tests.cluster import ROOT, clean_environment


def test_a_reader_who_leaves_early_sees_no_traceback() -> None:
    runner = subprocess.Popen(
        [sys.executable, "-m", "scripts.lab.runner", "--list", "--only", "iteration"],
        cwd=ROOT,
        env=clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert runner.stdout is not None
    assert runner.stderr is not None
    runner.stdout.close()
    assert (runner.stderr.read(), runner.wait(60)) == ("", 141)
