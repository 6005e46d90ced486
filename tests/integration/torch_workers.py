"""Jobs whose workers have PyTorch, in an environment of its own: this project's has none."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.cluster import ROOT, Cluster, cluster

PYTHON = Path(os.environ.get("MERCURY_TORCH_PYTHON", ROOT / ".venv-torch" / "bin" / "python"))


def torch_job(command: list[str], van: str = "mercury", **env: str) -> AbstractContextManager[Cluster]:
    if not PYTHON.exists():
        pytest.skip(f"no PyTorch: {PYTHON} is not there, so nothing of pslite_ext.torch was tried")
    return cluster(command, van=van, python=str(PYTHON), env={"PYTHONPATH": str(ROOT), **env})
