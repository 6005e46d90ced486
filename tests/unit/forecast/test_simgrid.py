"""The simulator against SimGrid, an independent engine that shares links as fluids.

Needs Debian's python3-simgrid, for whichever Python it is installed for; skipped without it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from pslite_ext.forecast.model import Job, Layer
from pslite_ext.forecast.simulate import Cluster, SimulatedJob, simulate

REFERENCE = Path(__file__).resolve().parent / "simgrid_reference.py"
MB = 1e6


@cache
def python_with_simgrid() -> str | None:
    found = [sys.executable, shutil.which("python3"), shutil.which("python3", path="/usr/bin")]
    for python in filter(None, found):
        tried = subprocess.run([python, "-c", "import simgrid"], capture_output=True, timeout=60)
        if tried.returncode == 0:
            return python
    return None


def job(sizes: list[float], bp_s: float = 0.1, fp_s: float = 0.05) -> Job:
    return Job(tuple(Layer(f"l{i}", size, bp_s, fp_s) for i, size in enumerate(sizes)))


SMALL = job([8 * MB, 16 * MB, 24 * MB])
MANY = job([float((i * 7 % 13 + 1) * MB) for i in range(20)], bp_s=0.02, fp_s=0.01)
CASES = {
    "even": (SMALL, [100 * MB] * 2, [100 * MB] * 2, 0.0, ()),
    "one server": (SMALL, [100 * MB] * 4, [100 * MB], 0.0, ()),
    "eight to two": (SMALL, [100 * MB] * 8, [100 * MB] * 2, 0.0, ()),
    "latency": (SMALL, [100 * MB] * 2, [100 * MB] * 2, 0.02, ()),
    "many layers": (MANY, [200 * MB] * 3, [200 * MB] * 3, 0.001, ()),
    "a slow link of a worker": (SMALL, [100 * MB, 40 * MB], [200 * MB] * 2, 0.0, ()),
    "slow servers": (MANY, [200 * MB] * 4, [80 * MB] * 2, 0.0, ()),
    "a slow worker": (MANY, [200 * MB] * 3, [200 * MB] * 3, 0.0, (1.0, 1.0, 2.5)),
    "little to send": (MANY, [2000 * MB] * 2, [2000 * MB] * 2, 0.0005, ()),
}


@pytest.mark.parametrize("name", CASES)
def test_iterations_take_as_long_as_in_simgrid(name: str) -> None:
    python = python_with_simgrid()
    if python is None:
        pytest.skip("SimGrid is not installed (Debian: python3-simgrid)")
    training, worker_rates, server_rates, latency_s, slowness = CASES[name]
    factors = slowness or (1.0,) * len(worker_rates)
    case = {
        "worker_rates": worker_rates,
        "server_rates": server_rates,
        "latency_s": latency_s,
        "bytes": [int(size) for size in training.bytes],
        "ready_s": [(training.bp_end * factor).tolist() for factor in factors],
        "forward_s": [(training.after_pull_s * factor).tolist() for factor in factors],
    }
    done = subprocess.run(
        [python, str(REFERENCE)],
        input=json.dumps(case),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    cluster = Cluster(
        worker_rates, server_rates, latency_s=latency_s, packet_bytes=50e3, sharing="fair"
    )
    ours = (
        simulate(SimulatedJob(training, "wfbp", slowness=slowness), cluster)
        .outcomes[0]
        .iteration_s[0]
    )
    np.testing.assert_allclose(ours, json.loads(done.stdout), rtol=0.02)
