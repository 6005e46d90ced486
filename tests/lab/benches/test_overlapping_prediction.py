"""Batches that overlap, in simulated races: what holds of them all the same."""

from __future__ import annotations

import pytest

from scripts.lab.benches.overlapping_prediction import Overlapping, _reserve
from scripts.lab.benches.race_prediction import Conditions


@pytest.mark.parametrize("least", [1, 4])
@pytest.mark.parametrize("bound", [8, 30])
def test_no_update_is_applied_too_late(bound: int, least: int) -> None:
    race = Overlapping(Conditions("C2", "N2", 0.01), bound, least)
    assert race.gradients(10) > 30
    assert bound // 2 < race.oldest <= bound


def test_in_step_all_make_as_many() -> None:
    race = Overlapping(Conditions("C2", "N2", 0.01), None)
    race.gradients(10)
    assert max(race.iterations) - min(race.iterations) <= 1
    assert min(race.iterations) > 1


def test_what_is_reserved_is_taken_until_its_end() -> None:
    rates = [[0.0, 10.0]]
    _reserve(rates, 4.0, 2.0)
    assert rates == [[0.0, 6.0], [2.0, 10.0]]
    _reserve(rates, 3.0, 1.0)
    assert rates == [[0.0, 3.0], [1.0, 6.0], [2.0, 10.0]]
    _reserve(rates, 9.0, 2.0)
    assert rates == [[0.0, 1.0], [1.0, 1.0], [2.0, 10.0]]
    _reserve(rates, 9.0, 0.0)
    assert rates[-1] == [2.0, 10.0]
