"""The soak's rounds: one that fails for the soak's own fault is a wrong round, not the end."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from scripts.soak import runner
from scripts.soak.faults import STRIKES_WITHIN_S, SURVIVES, Fault, Strike
from scripts.soak.record import Round
from scripts.soak.runner import FAILED_ITSELF, GIVES_UP_AFTER, LEAK, VANS, Plan, one_round, soak
from scripts.soak.verdict import NOT_STRUCK, Process, Verdict


class Job:
    """Goes on whatever happens."""

    leaves: Sequence[str] = ()
    leaves_after: Sequence[str] = ()

    def __init__(self, *_: object) -> None:
        pass

    def __enter__(self) -> Job:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def begin(self, *_: object) -> None:
        pass

    def outcome(self, *_: object) -> list[Process]:
        return [Process("worker_0", 0, "trained", 1.0)]

    def left(self) -> list[str]:
        return list(self.leaves)

    def left_after(self) -> list[str]:
        return list(self.leaves_after)


def _with_job(patch: pytest.MonkeyPatch, job: type[Job], strike: Strike | Exception) -> None:
    def struck(*_: object) -> Strike:
        if isinstance(strike, Exception):
            raise strike
        return strike

    plan = Plan("zmq", Fault("lose", "", SURVIVES, struck), 1, 1, 0.0)
    patch.setattr(runner, "DisturbedJob", job)
    patch.setattr(runner.Plan, "drawn", staticmethod(lambda *_: plan))


def test_an_exception_is_a_wrong_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _with_job(monkeypatch, Job, IndexError("nobody to choose"))
    done = one_round(3, tmp_path)
    assert done.verdict == Verdict(FAILED_ITSELF, "IndexError: nobody to choose")
    assert not done.verdict.right
    assert "nobody to choose" in (tmp_path / "soak.log").read_text()


def test_what_did_not_strike_is_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _with_job(monkeypatch, Job, Strike(["worker 1"], happened=False))
    done = one_round(3, tmp_path)
    assert done.verdict.outcome == NOT_STRUCK
    assert STRIKES_WITHIN_S < runner.START_S


@pytest.mark.parametrize("when", ["leaves", "leaves_after"])
def test_what_is_left_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    _with_job(monkeypatch, type("Leaking", (Job,), {when: ["shm/a"]}), Strike([]))
    assert one_round(3, tmp_path).verdict == Verdict(LEAK, "shm/a")


def test_the_soak_goes_on_after_a_failure_of_its_own_and_gives_up_at_last() -> None:
    def failing(seed: int, *_: object) -> Round:
        if seed > 1000:
            raise KeyboardInterrupt
        outcome = FAILED_ITSELF if seed > 5 else "ended"
        return Round(seed, "zmq", "kill", Verdict(outcome), 1.0)

    told: list[str] = []
    rounds = soak(4, lambda _: False, told=told.append, make_round=failing)
    assert [r.seed for r in rounds] == list(range(4, 6 + GIVES_UP_AFTER))
    added: list[Round] = []
    assert soak(999, lambda _: False, told=told.append, add=added.append, make_round=failing)
    assert [r.seed for r in added] == [999, 1000]
    assert told[-1] == "interrupted after 2 rounds"


def test_a_seed_draws_the_same_again() -> None:
    plans = [Plan.drawn(random.Random(7), (), VANS) for _ in range(2)]
    assert plans[0] == plans[1]
    assert Plan.drawn(random.Random(7), ["flip"], ["zmq"]).fault.name == "flip"
