"""Jobs under MXNet that die and go on: from the newest checkpoint that all have, bit for bit."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster import ROOT, cluster

SCRIPT = str(ROOT / "tests" / "integration" / "mxnet_saving.py")
STEPS = 23


def run(folder: Path, where: int, *more: int, workers: int = 2) -> list[list[str]]:
    """What each worker says, line by line."""
    command = [SCRIPT, str(folder), str(STEPS), str(where), *map(str, more)]
    with cluster(command, workers, 1, "mercury") as job:
        job.wait()
        if not more:
            job.check()
        return [w.output.splitlines() for w in job.workers]


@pytest.mark.drawn(1)
@pytest.mark.parametrize("where", [0, 1])
def test_a_job_that_died_goes_on_as_if_it_had_not(tmp_path: Path, where: int) -> None:
    whole = run(tmp_path / "whole", where)
    run(tmp_path / "broken", where, 13)
    resumed = run(tmp_path / "broken", where)
    assert f"mercury: goes on after step 10, from {tmp_path / 'broken'}" in resumed[0]
    for before, after in zip(whole, resumed):
        assert "begins after 10" in after
        for word in ("same", "own"):
            (one,) = (line for line in before if line.startswith(f"{word} "))
            assert one in after
    assert len({line for said in resumed for line in said if line.startswith("same ")}) == 1
