"""The whole KVStore interface on real processes; the checks are in store_checks.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster import cluster, job_that_trains_on
from tracer.check import check_run
from tracer.run import read_run

CHECKS = Path(__file__).parent / "store_checks.py"


# Policies, lanes and packets at the edges of what they may be (tests/cpp has all combinations).
PACKETS = [
    ({"MERCURY_POLICY": "wfbp", "MERCURY_LANES": "3", "MERCURY_CHECKSUM": "0"}, 2, 2),
    ({"MERCURY_POLICY": "p3", "MERCURY_PARTITION_BYTES": "4096"}, 2, 2),
    (
        {
            "MERCURY_DETERMINISTIC": "1",
            "MERCURY_PACKET_BYTES": "1024",
            "MERCURY_CREDIT_BYTES": "2000",
            "MERCURY_SERVER_SHARES": "5,2",
        },
        3,
        2,
    ),
]


def interface(
    van: str, workers: int, servers: int, env: dict[str, str], traces: Path | None = None
) -> None:
    """With `traces`, all of it is traced as well, and the traces must be without a fault."""
    if traces is not None:
        env = {**env, "MERCURY_TRACE_DIR": str(traces)}
    with cluster([str(CHECKS)], workers, servers, van=van, env=env) as job:
        job.wait()
        for worker in job.workers:
            assert "\nall " in worker.output, job.report()
        job.check()
    if traces is not None:
        run = read_run(traces, strict=True)
        assert [str(finding) for finding in check_run(run)] == []
        assert run.num_workers == workers
        assert all(len(trace.records) > 100 for trace in run.traces)


@pytest.mark.parametrize(
    ("van", "workers", "servers"),
    [("zmq", 2, 2), ("zmq", 3, 2), ("mercury", 2, 2), ("mercury", 3, 2), ("mercury", 1, 2)],
)
def test_interface(van: str, workers: int, servers: int, tmp_path: Path) -> None:
    # Some with traces, and some with parts that are not equal.
    env = {"MERCURY_SERVER_SHARES": "1,3"} if workers == 3 else {}
    interface(van, workers, servers, env, tmp_path if workers == 2 else None)


@pytest.mark.parametrize(("env", "workers", "servers"), PACKETS)
def test_packets(env: dict[str, str], workers: int, servers: int, tmp_path: Path) -> None:
    interface("mercury", workers, servers, {**env, "MERCURY_TRACE_FORMAT": "binary"}, tmp_path)


def test_servers_and_schedulers_do_without_mxnet(tmp_path: Path) -> None:
    with job_that_trains_on(tmp_path, forked=False) as job:
        loaded = {
            process.role: "libmxnet" in Path(f"/proc/{process.child.pid}/maps").read_text()
            for process in job.processes
        }
    assert loaded == {"scheduler": False, "server": False, "worker": True}
