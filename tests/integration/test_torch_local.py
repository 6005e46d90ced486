"""Local steps under PyTorch: the weights that the papers' rules make, and those of plain torch."""

from __future__ import annotations

import pytest

from tests.integration.torch_workers import torch_job

pytestmark = pytest.mark.xdist_group("torch")  # imported once

CASES = ("known_updates", "real_training", "each_step_is_synchronous")
SEVERAL = ("shared_alike", "odd_parameters", "outer_schedule")


@pytest.mark.parametrize(
    ("workers", "cases"),
    [(1, (*CASES, "nothing_travels", "outer_schedule")), (2, (*CASES, *SEVERAL)), (3, CASES)],
)
def test_weights_are_as_they_should_be(workers: int, cases: tuple[str, ...]) -> None:
    with torch_job("torch_local.py", *cases, workers=workers, servers=min(workers, 2)) as job:
        job.wait(timeout_s=300)
        for worker in job.workers:
            for case in cases:
                assert f"as it should be: {case}" in worker.output, job.report()
        if workers > 1 and "outer_schedule" in cases:
            told = r"outer lr = "
            assert all(told in worker.output for worker in job.workers), job.report()
        else:
            job.check()
