"""examples/lda.py: as good as one process alone, and no word is missing, whatever was lost."""

from __future__ import annotations

import re
import signal
import subprocess
import sys

import pytest

from scripts.lab.systems import dying_server
from tests.cluster import ROOT, clean_environment, cluster

SCRIPT = str(ROOT / "examples" / "lda.py")
# Of three topics, sampling comes to take two for one from some beginnings, on one process, too.
SMALL = [*("--topics", "2", "--words", "60", "--documents", "90"), *("--length", "50")]
WORKERS = 3


def likelihood(said: str) -> float:
    found = re.search(r"4500 words in topics, none less than 0 .*held-out word: (-[\d.]+)", said)
    assert found, said
    return float(found[1])


@pytest.fixture(scope="module")
def alone() -> float:
    ran = subprocess.run(
        [sys.executable, SCRIPT, *SMALL, "--sweeps", "20", "--alone"],
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return likelihood(ran.stdout)


def test_updates_that_are_dropped(alone: float) -> None:
    env = {"MERCURY_FABRIC_DELAY_BOUND": "2"}
    with cluster([SCRIPT, *SMALL, "--sweeps", "60"], WORKERS, 1, "mercury", env=env) as job:
        job.check()
        # All three begin with an update of version 0: one of them cannot be applied any more.
        assert any("'too_old': 0" not in worker.output for worker in job.workers), job.report()
        assert likelihood(job.servers[0].output) == pytest.approx(alone, abs=0.1)


def test_a_server_that_is_killed(alone: float) -> None:
    command = [dying_server.__file__, SCRIPT, *SMALL, "--sweeps", "80"]
    with cluster(command, WORKERS, 1, "mercury", replicas=1) as job:
        job.wait()
        assert job.servers[0].code == -signal.SIGKILL, job.report()
        assert [worker.code for worker in job.workers] == [0] * WORKERS, job.report()
        assert likelihood(job.of("replica")[0].output) == pytest.approx(alone, abs=0.1)
