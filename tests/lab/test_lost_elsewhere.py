"""Other systems lose a worker in the lab: those that are left have the same weights."""

from __future__ import annotations

import random

import pytest

from scripts.lab.lost_elsewhere import (
    HOROVODS,
    TORCHFTS,
    Elsewhere,
    Patience,
    Returned,
    lost,
    main,
    plain,
    row,
    row_again,
    stood_s,
)
from scripts.lab.lost_nodes import Job, Loss
from scripts.lab.systems.peers import PeerMissing


@pytest.mark.usefixtures("privileged")
@pytest.mark.parametrize("system", ["torchft", "horovod"])
def test_a_worker_is_lost(system: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Their shortest times are for a machine that does nothing else.
    monkeypatch.setitem(TORCHFTS, "torchft", Patience(5, 5000))
    monkeypatch.setitem(HOROVODS, "horovod", Patience(5))
    try:
        its = lost(system, Job(1e9, 4), random.Random(1))
    except PeerMissing as missing:
        pytest.skip(f"{system}: {missing}")
    assert its.loss.median_s > 0
    assert its.loss.next_s > 0
    assert its.more_lost in (0, 1)


def test_what_a_worker_has_said_is_read_as_it_said_it() -> None:
    assert plain("[2]<stdout>:begun") == "begun"
    assert plain("begun") == "begun"


def test_a_row_adds_up() -> None:
    its = [
        Elsewhere(Loss(median_s=0.3, longest_s=1.5, next_s=1.2), discarded=1),
        Elsewhere(Loss(median_s=0.5, longest_s=0.7, next_s=0.4), discarded=2, more_lost=1),
    ]
    assert row("theirs", its) == "| theirs | 2 | 0.40 s | 0.80 and 1.20 s | 1.50 s | 3 | 1 |"


def test_what_the_others_stood_still_for() -> None:
    ends = [0.0, 1.0, 2.0, 3.0, 5.5, 6.0, 7.5]  # steps of 1 s; killed in that of 2.5 s
    assert stood_s(ends, 3.5) == 1.5 + 0.5
    its = [Returned(2.0, 1.0), Returned(3.0, 4.0)]
    assert row_again("theirs", its) == "| theirs | 2 | 2.50 and 3.00 s | 2.50 and 4.00 s |"


def test_bad_input_is_one_clear_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--times", "0"])
    assert "at least one time" in capsys.readouterr().err
