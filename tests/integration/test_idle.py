"""Idle processes do not use the processor."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from tests.cluster import cluster

WATCHED_S = 5.0
# The promise is 1% of a core; the bound is generous because machines that run tests are busy.
BOUND_S = 0.03 * WATCHED_S
WINDOWS = 10  # one is enough; starting may take its time, and a thread that spins is in all of them

IDLE = """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
import mxnet as mx
kv = mx.kv.create('dist_sync')
kv.init('w', mx.nd.ones((1000,)))
kv.pushpull('w', mx.nd.ones((1000,)))
mx.nd.waitall()
print('idle', flush=True)
signal.sigwait({signal.SIGUSR1})
"""


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.drawn(1)
@pytest.mark.parametrize("van", ["zmq", "mercury"])
def test_idle(van: str, tmp_path: Path) -> None:
    """Traced, which must not wake anybody up either."""
    with cluster(["-c", IDLE], van=van, env={"MERCURY_TRACE_DIR": str(tmp_path)}) as job:
        job.wait_output("idle")
        for _ in range(WINDOWS):
            before = {p.name: cpu_seconds(p.child.pid) for p in job.processes}
            time.sleep(WATCHED_S)
            used = {p.name: cpu_seconds(p.child.pid) - before[p.name] for p in job.processes}
            if max(used.values()) < BOUND_S:
                break
        else:
            pytest.fail(f"{used} s of the processor in {WATCHED_S} s")
        for worker in job.workers:
            worker.kill(signal.SIGUSR1)
        job.check()
