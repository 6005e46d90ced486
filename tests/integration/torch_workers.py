"""Jobs whose workers have PyTorch, in an environment of its own: this project's has none."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from pslite_ext.launch.supervise import Supervisor
from tests.cluster import ROOT, Cluster, Process, clean_environment, cluster, free_port

PYTHON = Path(os.environ.get("MERCURY_TORCH_PYTHON", ROOT / ".venv-torch" / "bin" / "python"))
NODE = str(Path(__file__).with_name("torch_node.py"))


def need_torch() -> None:
    if not PYTHON.exists():
        pytest.skip(f"no PyTorch: {PYTHON} is not there, so nothing of pslite_ext.torch was tried")


def torch_job(
    script: str, *words: str, workers: int = 2, van: str = "mercury", **env: str
) -> AbstractContextManager[Cluster]:
    """Workers run the script of this folder; without PyTorch, the test is skipped."""
    need_torch()
    command = [NODE, str(Path(__file__).with_name(script)), *words]
    own = {"PYTHONPATH": str(ROOT), **env}
    return cluster(command, workers, 1, van, str(PYTHON), own)


@contextmanager
def ranks(script: str, *words: str, workers: int = 2, **env: str) -> Iterator[Cluster]:
    """Workers with torchrun's variables alone, in processes that start sooner than torchrun's."""
    need_torch()
    port = free_port()
    base = clean_environment(
        WORLD_SIZE=str(workers),
        LOCAL_WORLD_SIZE=str(workers),
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
        OMP_NUM_THREADS="1",
        PYTHONUNBUFFERED="1",
        PYTHONPATH=str(ROOT),
        **env,
    )
    command = [str(PYTHON), "-W", "ignore", str(Path(__file__).with_name(script)), *words]
    supervisor = Supervisor()
    with tempfile.TemporaryDirectory() as folder:
        try:
            processes = []
            for rank in range(workers):
                log = Path(folder) / f"worker_{rank}.log"
                own = {**base, "RANK": str(rank), "LOCAL_RANK": str(rank)}
                child = supervisor.start(command, own, log=log)
                processes.append(Process("worker", rank, child, log))
            yield Cluster(processes, port)
        finally:
            supervisor.end()
