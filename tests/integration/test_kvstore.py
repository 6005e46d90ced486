"""The whole KVStore interface on real processes; the checks are in store_checks.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from cluster import cluster

CHECKS = Path(__file__).parent / "store_checks.py"


@pytest.mark.parametrize(("workers", "servers"), [(2, 2), (3, 1), (1, 2)])
def test_interface(workers: int, servers: int) -> None:
    with cluster([str(CHECKS)], workers, servers) as job:
        job.wait()
        for worker in job.workers:
            assert "\nall " in worker.output, job.report()
        job.check()
