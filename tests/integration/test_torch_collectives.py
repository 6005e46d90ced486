"""What PyTorch's own ways reach us by: the backend "mercury", and DDP's hook."""

from __future__ import annotations

import pytest

from tests.integration.torch_workers import ranks

pytestmark = pytest.mark.xdist_group("torch")  # imported once

TOLD = (
    "MAX is not offered, SUM and AVG are; use a group with backend='gloo'",
    "no SUM of torch.bool",
    "no AVG of torch.int32",
    "a tensor of layout torch.sparse_coo: only dense ones are supported",
    "gather is not offered",
    "a group is always of all 2 workers",
    "but not all workers call the same",
)


def test_all_collectives() -> None:
    with ranks("torch_collectives.py", "different") as job:
        job.check()
        for worker in job.workers:
            assert f"all collectives {worker.rank}" in worker.output, job.report()
            for text in TOLD:
                assert text in worker.output, text


def test_a_hook_for_ddp() -> None:
    with ranks("torch_hook.py") as job:
        job.check()
        assert all("as DDP" in worker.output for worker in job.workers), job.report()


def test_many_sums_of_random_sizes() -> None:
    """As many as a busy CI has time for; `torch_reductions.py 100000` was tried by hand."""
    with ranks("torch_reductions.py", "2000") as job:
        job.check()
        assert all("summed 2000" in worker.output for worker in job.workers), job.report()
