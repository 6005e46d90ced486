"""A host with a worker and a server dies in the lab: the others are given the same sums."""

from __future__ import annotations

import random

import pytest

from scripts.lab.lost_nodes import Job, lose, main
from scripts.lab.systems.peers import PeerMissing


@pytest.mark.drawn(1)
@pytest.mark.usefixtures("privileged")
@pytest.mark.parametrize(("framework", "workers"), [("mxnet", 1), ("torch", 2)])
def test_a_host_is_lost(framework: str, workers: int) -> None:
    if framework == "mxnet":
        pytest.importorskip("mxnet")
    try:
        loss = lose("a host", Job(1e9, 4, framework, workers), random.Random(1))
    except PeerMissing as error:
        pytest.skip(str(error))
    assert loss.median_s > 0
    assert loss.next_s > 0


def test_who_is_killed() -> None:
    job = Job(1e9, 4, workers_a_host=2)
    assert job.victims("a host") == ["worker2", "worker3", "server1"]
    assert Job(1e9, 4).victims("a host") == ["worker3", "server3"]


def test_bad_input_is_one_clear_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--times", "0"])
    assert "at least one time" in capsys.readouterr().err
