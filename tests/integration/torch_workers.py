"""Jobs whose workers have PyTorch, in an environment of its own: this project's has none."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.cluster import ROOT, Cluster, cluster

PYTHON = Path(os.environ.get("MERCURY_TORCH_PYTHON", ROOT / ".venv-torch" / "bin" / "python"))
NODE = str(Path(__file__).with_name("torch_node.py"))


def torch_job(
    script: str, *words: str, workers: int = 2, van: str = "mercury", **env: str
) -> AbstractContextManager[Cluster]:
    """Workers run the script of this folder; without PyTorch, the test is skipped."""
    if not PYTHON.exists():
        pytest.skip(f"no PyTorch: {PYTHON} is not there, so nothing of pslite_ext.torch was tried")
    command = [NODE, str(Path(__file__).with_name(script)), *words]
    own = {"PYTHONPATH": str(ROOT), **env}
    return cluster(command, workers, 1, van, str(PYTHON), own)
