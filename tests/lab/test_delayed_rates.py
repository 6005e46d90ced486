"""A rate of learning that knows how late an update is."""

from __future__ import annotations

import pytest

from scripts.lab import delayed_rates
from scripts.lab.delayed_rates import UPDATES_MOST, WORTHS, Job, updates_to
from scripts.lab.workloads.digits_training import Digits, load

TARGET = 0.5


@pytest.fixture(scope="module")
def digits() -> Digits:
    return load()


def test_the_later_the_less_and_less_so_as_time_goes_on() -> None:
    worth = WORTHS["AdaDelay"]
    assert worth(7, 0) == 1
    assert worth(20, 10) > worth(20, 30)
    assert worth(600, 30) > worth(20, 30)
    assert worth(100, 300) == 0.5


def test_a_worker_that_is_alone_is_never_late(digits: Digits) -> None:
    needed = {
        updates_to(TARGET, Job(0.002, 0.0, worth, 1, workers=1), digits)
        for worth in WORTHS.values()
    }
    assert len(needed) == 1
    assert needed < {*range(UPDATES_MOST)}


def test_what_is_worth_nothing_teaches_nothing(digits: Digits) -> None:
    assert updates_to(TARGET, Job(0.002, 0.0, lambda *_: 0.0, 1), digits, most=60) == 60
    assert updates_to(TARGET, Job(0.002, 0.0, WORTHS["the same"], 1), digits) < UPDATES_MOST


def test_it_prints_a_table_for_each_momentum(
    digits: Digits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delayed_rates, "SEEDS", 1)
    monkeypatch.setattr(delayed_rates, "RATES", {0.0: (0.002,), 0.9: (0.0003,)})
    monkeypatch.setattr(delayed_rates, "PARTIAL", 0.2)
    text = "\n".join(delayed_rates.lines(digits))
    assert text.count("| AdaDelay | ") == text.count("| the same | ") == 2
    assert "| momentum 0.9 | 0.0003 |" in text
