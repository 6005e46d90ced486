"""What PyTorch's own ways reach us by: the backend "mercury", and DDP's hook."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.torch_workers import ranks

pytestmark = pytest.mark.xdist_group("torch")  # imported once

TOLD = (
    "no SUM of torch.float8_e4m3fn",
    "no AVG of torch.bool",
    "no BAND of torch.float32",
    "a tensor of layout torch.sparse_coo: only dense ones are supported",
    "allgather: 2 elements a worker, 5 of all workers",
    "but not all workers call the same",
)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("words", [("different",), ("different", "staged")])
def test_all_collectives(words: tuple[str, ...]) -> None:
    with ranks("torch_collectives.py", *words, workers=3) as job:
        job.check()
        for worker in job.workers:
            assert f"all collectives {worker.rank}" in worker.output, job.report()
            for text in TOLD:
                assert text in worker.output, text


def test_callbacks_that_wait_for_other_collectives() -> None:
    with ranks("torch_futures.py", workers=3) as job:
        job.check()
        assert all("of any depth" in worker.output for worker in job.workers), job.report()


def test_what_torch_builds_on_groups_of_some_workers(tmp_path: Path) -> None:
    """FSDP2 and hybrid sharding train as one process does; checkpoints of torch's, DTensor and Join
    work. One of ours would hold one shard."""
    with ranks("torch_sharded.py", str(tmp_path), workers=4) as job:
        job.check()
        told = "checkpoint: model has a DTensor in '0.weight', of which each worker has a shard"
        for worker in job.workers:
            assert "as alone" in worker.output, job.report()
            assert worker.output.count(told) == 2, job.report()


def test_a_hook_for_ddp() -> None:
    with ranks("torch_hook.py") as job:
        job.check()
        for worker in job.workers:
            assert "as DDP" in worker.output, job.report()
            assert worker.output.count("sums over all 2 workers of the job, and this process") == 2
            assert "ddp_comm_hook: a parameter has a sparse gradient" in worker.output


def test_a_hook_whose_buckets_hold_small_and_large_ones() -> None:
    with ranks("torch_hook.py", MERCURY_WIRE="int8") as job:
        job.check()
        assert all("coded" in worker.output for worker in job.workers), job.report()


def test_many_sums_of_random_sizes() -> None:
    """As many as a busy CI has time for; `torch_reductions.py 100000` was tried by hand."""
    with ranks("torch_reductions.py", "2000") as job:
        job.check()
        assert all("summed 2000" in worker.output for worker in job.workers), job.report()
