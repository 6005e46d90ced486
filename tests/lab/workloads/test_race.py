"""A race goes on until it is told to stop: workers together, or each on its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scripts.lab.workloads import race as races
from scripts.lab.workloads.digits_training import CLASSES, INPUTS, Digits
from scripts.lab.workloads.measurement import MARK
from scripts.lab.workloads.race import ELEMENTS, Race, first_vector, run

_NO_TOPICS = Race("", "", "C0", 1, 0.0, 0.01)


class Alone:
    """An exchange of one worker, which takes the stop's file away or puts it there."""

    workers = 1
    applied = True

    def __init__(self, together: bool, stop: Path, stop_after: int, rank: int = 0) -> None:
        self.together = together
        self.rank = rank
        self.pushed: list[Any] = []
        self._model = first_vector(_NO_TOPICS)
        self._stop, self._stop_after = stop, stop_after

    def get(self) -> Any:
        return self._model

    def push(self, update: Any) -> None:
        self.pushed.append(update.copy())
        self._model = self._model + update
        if len(self.pushed) == self._stop_after:
            self._stop.touch()

    def figures(self) -> dict[str, Any]:
        return {"delays": {"1": len(self.pushed)}}

    def leave(self) -> None:
        self.left = True


def _race(tmp_path: Path) -> Race:
    random = np.random.default_rng(0)
    images = random.random((40, INPUTS)).astype(np.float32)
    labels = random.integers(CLASSES, size=40)
    Digits(images, labels, images, labels).save(tmp_path / "digits.npz")
    return Race(str(tmp_path / "digits.npz"), str(tmp_path / "stop"), "C1", 1, 0.0, 0.01)


def _said(text: str) -> list[dict[str, Any]]:
    return [json.loads(line[len(MARK) :]) for line in text.splitlines() if line.startswith(MARK)]


@pytest.mark.parametrize("together", [False, True])
def test_it_ends_once_it_is_told_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], together: bool
) -> None:
    alone = Alone(together, tmp_path / "stop", stop_after=3)
    run(_race(tmp_path), alone)
    assert alone.left
    said = _said(capsys.readouterr().out)
    result = said[-1]
    # Together, one more iteration carries the word to all.
    assert result["iterations"] == len(alone.pushed) == (4 if together else 3)
    assert [update[-1] for update in alone.pushed] == [0, 0, 0, 1][: len(alone.pushed)]
    assert result["delays"] == {"1": len(alone.pushed)}
    assert sum(event["event"] == "evaluated" for event in said) == len(alone.pushed)
    assert all(update.shape == (ELEMENTS,) and update[:-1].any() for update in alone.pushed)


def test_of_workers_that_are_together_one_looks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(_race(tmp_path), Alone(True, tmp_path / "stop", stop_after=2, rank=1))
    assert "evaluated" not in capsys.readouterr().out


def test_slow_iterations_take_longer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("scripts.lab.workloads.race.time.sleep", slept.append)
    monkeypatch.setattr(races, "slowness", lambda kind, worker, iteration, seed: 1.0 + iteration)
    race = _race(tmp_path)
    told = Race(**{**vars(race), "compute_s": 1000.0})
    run(told, Alone(False, tmp_path / "stop", stop_after=3))
    assert [round(seconds, -3) for seconds in slept] == [1000, 2000, 3000]
