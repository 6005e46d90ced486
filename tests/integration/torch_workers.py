"""Jobs whose workers have PyTorch, in an environment of its own: this project's has none.

The workers are forked from one process that has imported it; a test that is about how processes
start starts its own.
"""

from __future__ import annotations

import functools
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import MappingProxyType

import pytest

from scripts.lab.systems.peers import PeerMissing, peer_python
from tests.cluster import ROOT, Cluster, Process, clean_environment, cluster, free_port
from tests.forks import Forked, Forks, end

EXAMPLES = ROOT / "examples"
FOLDER = Path(__file__).parent
NOTHING: Mapping[str, str] = MappingProxyType({})
SERVE = ["-c", "import pslite_ext.torch"]  # gets no further, and needs no PyTorch


@functools.cache
def torch_python() -> Path:
    """The Python of an environment with PyTorch; without one, the test is skipped."""
    if chosen := os.environ.get("MERCURY_TORCH_PYTHON"):
        return Path(chosen)
    try:
        return Path(peer_python("torch-ddp"))
    except PeerMissing as error:
        pytest.skip(f"no PyTorch, so nothing of pslite_ext.torch was tried: {error}")


_once = threading.Lock()


@functools.cache
def _forks() -> Forks:
    # For all workers: what examples/ import is there, too.
    path = f"{ROOT}:{EXAMPLES}:{Path(sys.prefix) / 'digits'}"
    environment = clean_environment(OMP_NUM_THREADS="1", PYTHONPATH=path)
    command = [str(torch_python()), "-u", "-W", "ignore", str(FOLDER / "torch_forks.py")]
    return Forks(command, environment)


def forks() -> Forks:
    """Of workers that have PyTorch."""
    with _once:
        return _forks()


def torch_command() -> tuple[str, ...]:
    """What others start as a Python with PyTorch: a fork, unless that is what a test is about."""
    torch_python()
    return forks().as_command()


def torch_job(
    script: str,
    *words: str,
    workers: int = 2,
    servers: int = 1,
    van: str = "mercury",
    at: Callable[[str, int], str] | None = None,
    **env: str,
) -> AbstractContextManager[Cluster]:
    """Workers run the script of this folder; `at`: their hosts' addresses."""
    start = _runs(script, words)
    return cluster(SERVE, workers, servers, van, env=env, start_worker=start, at=at)


def fabric_job(
    script: str, *words: str, workers: int = 3, replicas: int = 0, env: Mapping[str, str] = NOTHING
) -> AbstractContextManager[Cluster]:
    """The same under MLfabric."""
    return cluster(
        SERVE,
        workers,
        servers=min(workers, 2),
        van="mercury",
        env={"MERCURY_FABRIC": "1", **env},
        start_worker=_runs(script, words),
        at=_a_host_each,
        replicas=replicas,
    )


def _a_host_each(role: str, rank: int) -> str:
    """Or the planner would see no network."""
    return f"127.0.0.{10 + rank + {'server': 100, 'replica': 101}.get(role, 0)}"


def _runs(script: str, words: Sequence[str]) -> Callable[[dict[str, str], Path], Forked]:
    torch_python()

    def start(own: dict[str, str], log: Path) -> Forked:
        own = {"RANK": own["DMLC_TASK_ID"], "WORLD_SIZE": own["DMLC_NUM_WORKER"], **own}
        return forks().start([str(FOLDER / script), *words], own, log)

    return start


@contextmanager
def ranks(script: str, *words: str, workers: int = 2, **env: str) -> Iterator[Cluster]:
    """Workers with torchrun's variables alone."""
    torch_python()
    port = free_port()
    base = clean_environment(
        WORLD_SIZE=str(workers),
        LOCAL_WORLD_SIZE=str(workers),
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
        **{"PYTHONPATH": str(ROOT), **env},
    )
    processes: list[Process] = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            for rank in range(workers):
                log = Path(folder) / f"worker_{rank}.log"
                own = {**base, "RANK": str(rank), "LOCAL_RANK": str(rank)}
                child = forks().start([str(FOLDER / script), *words], own, log)
                processes.append(Process("worker", rank, child, log))
            yield Cluster(processes, port)
        finally:
            end(p.child for p in processes)
