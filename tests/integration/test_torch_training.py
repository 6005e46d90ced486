"""PyTorch on mercury against DDP over Gloo: the same weights, on all workers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cluster import Process
from tests.integration.torch_workers import torch_job

pytestmark = pytest.mark.xdist_group("torch")  # imported once

# As torch_training.py reads them.
CASES = {
    "mercury": (
        "mlp:sgd:1:0",
        "cnn:momentum:1:0.5",
        "mlp:adam:1:0.5",
        "cnn:adamw:4:0",
        "cnn:adam:2:0.5:each",
        "mlp:adam:1:0.5:staged",
        "cnn:momentum:2:0:each:staged",
    ),
    "zmq": ("mlp:adam:1:0", "cnn:momentum:4:0.5", "mlp:sgd:1:0:staged"),
}


DIGEST = re.compile(r" [0-9a-f]{16}$")


def said(worker: Process) -> list[str]:
    """But for the farewell."""
    return [line for line in worker.output.splitlines() if not line.startswith("mercury: ")]


@pytest.mark.drawn(1)
@pytest.mark.parametrize("van", list(CASES))
def test_weights_are_ddp_s(tmp_path: Path, van: str) -> None:
    meeting = str(tmp_path / "meeting")
    with torch_job("torch_training.py", *CASES[van], van=van, MEETING=meeting) as job:
        job.wait(timeout_s=400)
        job.check()
        for worker in job.workers:
            assert said(worker) == [f"equal {case}" for case in CASES[van]]


# Of Adam's on four workers, the last bits of small gradients' sums would decide.
ON_HOSTS = ("mlp:sgd:1:0", "cnn:momentum:1:0.5", "cnn:momentum:2:0:each:staged")


def two_hosts(role: str, rank: int) -> str:
    """Of two workers and a server each."""
    return f"127.0.0.{2 + (rank // 2 if role == 'worker' else rank)}"


def test_weights_are_ddp_s_where_workers_share_hosts(tmp_path: Path) -> None:
    meeting = str(tmp_path / "meeting")
    with torch_job(
        "torch_training.py", *ON_HOSTS, workers=4, servers=2, at=two_hosts, MEETING=meeting
    ) as job:
        job.wait(timeout_s=400)
        job.check()
        for worker in job.workers:
            assert said(worker) == [f"equal {case}" for case in ON_HOSTS]


def test_each_use_that_the_docs_promise() -> None:
    with torch_job("torch_uses.py") as job:
        job.check()
        assert all("all uses" in worker.output for worker in job.workers), job.report()
        for told in ("nn.SyncBatchNorm finds no process group", "'0' has max_norm, by which each"):
            assert all(worker.output.count(told) == 1 for worker in job.workers), job.report()


def test_one_worker_is_plain_torch() -> None:
    with torch_job("torch_alone.py", workers=1) as job:
        job.check()
        assert "the same bit for bit, and nothing travelled" in job.workers[0].output, job.report()


@pytest.mark.drawn(1)
@pytest.mark.parametrize("workers", [2, 3])
def test_weights_of_every_optimizer_in_every_layout(workers: int) -> None:
    # Half of the optimizers with each number of workers: together, all of them. Two of the three
    # workers are summed on their host.
    words, at = ("torch_weights.py", "2", str(workers - 2)), two_hosts if workers == 3 else None
    with torch_job(*words, workers=workers, servers=workers - 1, at=at) as job:
        job.wait(timeout_s=400)
        job.check()
        tables = [[line for line in said(w) if DIGEST.search(line)] for w in job.workers]
        assert len(tables[0]) >= 10, job.report()
        assert all(table == tables[0] for table in tables), job.report()
        missing = job.workers[0].output.partition("missing:")[2].split("\n")[0]
    if missing.strip():
        pytest.skip(f"all as they should be, but without the optimizers of{missing}")


@pytest.mark.drawn(1)
@pytest.mark.parametrize("workers", [2, 4])
def test_a_hundred_steps_of_every_optimizer(workers: int) -> None:
    # Half of the cases with each number of workers: together, all of them.
    with torch_job("torch_reference.py", str(workers // 4), workers=workers, servers=2) as job:
        job.wait(timeout_s=400)
        job.check()
        digests = said(job.workers[0])
        assert len(digests) == 6 * 2
        assert all(said(worker) == digests for worker in job.workers), job.report()
