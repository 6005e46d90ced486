"""A host with a worker and a server dies in the lab: the others are given the same sums."""

from __future__ import annotations

import random

import pytest

from scripts.lab.lost_nodes import KINDS, lose, main


@pytest.mark.usefixtures("privileged")
def test_a_host_is_lost() -> None:
    pytest.importorskip("mxnet")
    loss = lose(KINDS["a host"], rate=1e9, megabytes=4, draw=random.Random(1))
    assert loss.median_s > 0
    assert loss.next_s > 0


def test_bad_input_is_one_clear_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--times", "0"])
    assert "at least one time" in capsys.readouterr().err
