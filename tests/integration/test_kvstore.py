"""The whole KVStore interface on real processes; the checks are in store_checks.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster import cluster, job_that_trains_on
from tracer.check import check_run
from tracer.run import read_run

CHECKS = Path(__file__).parent / "store_checks.py"


# Every kind of value on both paths, traced; settings of packets at the edges of what they may be
# (tests/cpp has all combinations of policies, lanes and kinds).
SETTINGS = [
    ("zmq", 3, {"MERCURY_SERVER_SHARES": "1,3"}),
    ("mercury", 2, {}),
    (
        "mercury",
        2,
        {"MERCURY_POLICY": "wfbp", "MERCURY_LANES": "3", "MERCURY_CHECKSUM": "0"},
    ),
    (
        "mercury",
        3,
        {
            "MERCURY_DETERMINISTIC": "1",
            "MERCURY_POLICY": "p3",
            "MERCURY_PARTITION_BYTES": "4096",
            "MERCURY_PACKET_BYTES": "1024",
            "MERCURY_CREDIT_BYTES": "2000",
            "MERCURY_SERVER_SHARES": "5,2",
            "MERCURY_TRACE_FORMAT": "binary",
        },
    ),
]


@pytest.mark.drawn(2)
@pytest.mark.parametrize(("van", "workers", "settings"), SETTINGS)
def test_interface(van: str, workers: int, settings: dict[str, str], tmp_path: Path) -> None:
    env = {**settings, "MERCURY_TRACE_DIR": str(tmp_path)}
    with cluster([str(CHECKS)], workers, 2, van=van, env=env) as job:
        job.wait()
        for worker in job.workers:
            assert "\nall " in worker.output, job.report()
        job.check()
    run = read_run(tmp_path, strict=True)
    assert [str(finding) for finding in check_run(run)] == []
    assert run.num_workers == workers
    assert all(len(trace.records) > 100 for trace in run.traces)


def test_servers_and_schedulers_do_without_mxnet(tmp_path: Path) -> None:
    with job_that_trains_on(tmp_path, forked=False) as job:
        loaded = {
            process.role: "libmxnet" in Path(f"/proc/{process.child.pid}/maps").read_text()
            for process in job.processes
        }
    assert loaded == {"scheduler": False, "server": False, "worker": True}
