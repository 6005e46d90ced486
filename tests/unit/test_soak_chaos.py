"""What a long disturbed job has lost of its time, and to what."""

from __future__ import annotations

import pytest

from scripts.soak.chaos import End, main, useful_of


def _ends(*moments: float, workers: int) -> list[End]:
    return [End(moment, workers) for moment in moments]


def test_an_event_costs_what_is_lost_until_the_next_one() -> None:
    # A step a second; the kill takes two more, the pause takes none.
    ends = _ends(*range(6), *range(8, 18), workers=3)
    said = useful_of(ends, [(5.5, "kill"), (10.5, "pause")])
    assert said["steps"] == 15
    assert said["median_s"] == {3: 1}
    assert said["longest_s"] == 3
    assert said["useful"] == pytest.approx(15 / 17, abs=1e-3)
    assert said["lost_s"] == {"kill": 2, "nothing yet": 0, "pause": 0}


def test_several_of_a_kind_cost_their_mean() -> None:
    ends = _ends(0, 1, 2, 5, 6, 7, 12, 13, 14, workers=2)
    said = useful_of(ends, [(2.0, "cut off"), (7.0, "cut off")])
    assert said["lost_s"] == {"nothing yet": 0, "cut off": (2 + 4) / 2}


def test_more_workers_may_take_longer() -> None:
    """Which is not lost: three work for two seconds a step, and two for one."""
    alike = [*_ends(0, 1, 2, 3, workers=2), *_ends(5, 7, 9, workers=3)]
    assert useful_of(alike, [(3.5, "join")])["useful"] == 1
    longer = [*alike, End(12, 3)]
    assert useful_of(longer, [])["useful"] == pytest.approx(1 - 3 * 1 / (2 * 3 + 3 * 9), abs=1e-3)


def test_an_event_that_there_is_not_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--only", "earthquake"])
    assert ended.value.code == 2
    assert "kill the scheduler" in capsys.readouterr().err
