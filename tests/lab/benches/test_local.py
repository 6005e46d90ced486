"""The bench `local`: what is compared, and when a loss has been reached."""

from __future__ import annotations

import json

import pytest

from scripts.lab.benches import local
from scripts.lab.benches.catalogue import LONG, cases_of, wanted
from scripts.lab.systems.job import JobFailed, Outcome
from scripts.lab.systems.system import DDP, TORCH, System

OURS = System(TORCH, "python", {"DMLC_PS_VAN_TYPE": "mercury"})
RING = System(DDP, "python", servers=False)


def test_local_steps_beside_synchronous_training() -> None:
    cases = cases_of(["local"], [OURS, RING], "usual")
    told = {case.system.name: case.system.env.get("LAB_LOCAL") for case in cases}
    assert [name for name, arguments in told.items() if not arguments] == [
        *(f"{TORCH} float32", f"{TORCH} int8", f"{DDP} {local.POWERSGD}"),
    ]
    every = {json.loads(arguments)["every"] for arguments in told.values() if arguments}
    assert every == {20, 100}
    for case in cases:
        looks, rounds = int(case.env["LAB_LOOKS"]), case.config.rounds
        assert rounds % looks == 0
        if arguments := told[case.system.name]:
            # Where it looks, a fragment has just come together.
            asked = json.loads(arguments)
            assert rounds // looks % (asked["every"] // asked.get("fragments", 1)) == 0


def test_only_if_asked_for() -> None:
    assert "local" in LONG
    assert wanted(TORCH, ["local"])


def outcome(*seeds: list[float]) -> Outcome:
    trained = [
        {"losses": losses, "seconds": [10.0 * n for n in range(1, len(losses) + 1)], "digest": "a"}
        for losses in seeds
    ]
    return Outcome([{"result": {"trained": trained}}] * 4, {})


def test_nothing_is_taken_for_a_loss_between_two_looks() -> None:
    figures = local.measured(outcome([4.0, local.LOSS + 0.1, local.LOSS - 0.3], [2.0]), 20)
    assert figures[f"time to a loss of {local.LOSS:g}"].value == (30.0 + 10.0) / 2
    assert figures["steps"].value == (60 + 20) / 2
    assert figures["time of a step"].value == 40.0 / 80
    with pytest.raises(JobFailed, match=r"a loss of 2\.9 was not reached; it came to 3\.100"):
        local.measured(outcome([2.0], [4.0, 3.1]), 20)
