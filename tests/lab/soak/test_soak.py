"""Links that fail between real processes, as the soak makes them fail: one job for each kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.soak.job import DisturbedJob
from scripts.soak.runner import one_round

pytestmark = pytest.mark.usefixtures("privileged")
FAULTS = ("cut", "silence", "swallow one way", "lose", "flip", "repeat", "delay", "replay")
# Of ZeroMQ's connections, three; a soak draws from all.
CASES = [(fault, "mercury") for fault in FAULTS] + [(fault, "zmq") for fault in FAULTS[::3]]


@pytest.mark.drawn(4)
@pytest.mark.parametrize(("fault", "van"), CASES)
def test_it_ends_as_promised(tmp_path: Path, fault: str, van: str) -> None:
    seed = 7
    done = one_round(seed, tmp_path, [fault], [van], {"MERCURY_HEARTBEAT_TIMEOUT_MS": "5000"})
    logs = "\n".join(f"--- {log.name}\n{log.read_text()}" for log in tmp_path.glob("*.log"))
    assert done.verdict.outcome in ("went on", "ended"), f"{done}\n{logs}"


@pytest.mark.drawn(1)
@pytest.mark.parametrize("fault", ["cut", "flip", "kill"])
def test_mlfabric_goes_on_or_ends(tmp_path: Path, fault: str) -> None:
    done = one_round(7, tmp_path, [fault], ["mlfabric"])
    logs = "\n".join(f"--- {log.name}\n{log.read_text()}" for log in tmp_path.glob("*.log"))
    assert done.verdict.outcome in ("went on", "ended"), f"{done}\n{logs}"


def test_what_a_job_leaves_behind_is_seen(tmp_path: Path) -> None:
    leaving = 'touch /dev/shm/ring "$TMPDIR/draft"; sleep 100 & exec "$@"'
    with DisturbedJob(tmp_path, "mercury", 1, 1, {}, ("sh", "-c", leaving, "sh")) as job:
        job.begin(1, 60)
        job.finish()
        assert all(process.code == 0 for process in job.outcome(0.0, 60, 0))
        left = job.left()
        assert [what for what in left if "/" in what] == ["tmp/draft", "shm/ring"]
        assert sum("(sleep) of " in what for what in left) == 3
    assert job.left_after() == []
