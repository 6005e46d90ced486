"""The whole KVStore interface on real processes; the checks are in store_checks.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from cluster import cluster

CHECKS = Path(__file__).parent / "store_checks.py"


# Policies, lanes and packets at the edges of what they may be (tests/cpp has all combinations).
PACKETS = [
    ({"MERCURY_POLICY": "wfbp", "MERCURY_LANES": "3", "MERCURY_CHECKSUM": "1"}, 2, 2),
    ({"MERCURY_POLICY": "p3", "MERCURY_PARTITION_BYTES": "4096"}, 2, 2),
    (
        {
            "MERCURY_DETERMINISTIC": "1",
            "MERCURY_PACKET_BYTES": "1024",
            "MERCURY_CREDIT_BYTES": "2000",
        },
        3,
        2,
    ),
]


def interface(van: str, workers: int, servers: int, env: dict[str, str]) -> None:
    with cluster([str(CHECKS)], workers, servers, van=van, env=env) as job:
        job.wait()
        for worker in job.workers:
            assert "\nall " in worker.output, job.report()
        job.check()


@pytest.mark.parametrize(
    ("van", "workers", "servers"),
    [("zmq", 2, 2), ("zmq", 3, 1), ("mercury", 2, 2), ("mercury", 3, 1), ("mercury", 1, 2)],
)
def test_interface(van: str, workers: int, servers: int) -> None:
    interface(van, workers, servers, {})


@pytest.mark.parametrize(("env", "workers", "servers"), PACKETS)
def test_packets(env: dict[str, str], workers: int, servers: int) -> None:
    interface("mercury", workers, servers, env)
