"""mercury launch, as tests of it start it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.cluster import ROOT, clean_environment

LIMIT_S = 60


def launch(folder: Path, *arguments: str, **env: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tracer", "launch", "--log-dir", str(folder / "logs"), *arguments],
        cwd=ROOT,
        env=clean_environment(**env),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def came_to(folder: Path, *arguments: str, **env: str) -> tuple[int, str, str]:
    """Exit code, output and errors."""
    job = launch(folder, *arguments, **env)
    out, err = job.communicate(timeout=LIMIT_S)
    return job.returncode, out, err


def python(code: str) -> list[str]:
    return ["--", sys.executable, "-c", "import os, sys, time, signal, subprocess\n" + code]
