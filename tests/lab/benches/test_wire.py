"""The benches `wire` and `accuracy`: what is compared, and by which floor; a small run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scripts.lab.bed.bed import LoopbackBed
from scripts.lab.benches import accuracy, wire
from scripts.lab.benches.case import Case
from scripts.lab.benches.catalogue import LONG, wanted
from scripts.lab.benches.scaling import Asked
from scripts.lab.systems.job import JobFailed, Outcome, run_job
from scripts.lab.systems.system import DDP, MERCURY, TORCH, System, system

OURS = System(TORCH, "python", {"DMLC_PS_VAN_TYPE": "mercury"})
RING = System(DDP, "python", servers=False)


def test_each_is_held_against_the_floor_of_its_own_bytes() -> None:
    cases = wire.wire([OURS, RING], Asked(nodes=[(2, 2)], models=["vgg16"]), 3)
    beside = {case.system.name: case for case in cases if case.setting.beside}
    assert list(beside) == [
        *("torch", "torch bf16", "torch int8"),
        *("torch-ddp bf16", "torch-ddp 1 MB bf16", "torch-ddp 5 MB bf16"),
    ]
    assert beside["torch int8"].system.env["MERCURY_WIRE"] == "int8"
    assert all(c.system.env["LAB_CONNECTIONS"] == "4" for n, c in beside.items() if DDP in n)
    seconds = {name: case.seconds for name, case in beside.items()}
    assert 1.8 < seconds["torch"] / seconds["torch bf16"] <= 2.0
    assert 2.9 < seconds["torch"] / seconds["torch int8"] < 3.9
    assert seconds["torch-ddp bf16"] == seconds["torch bf16"]
    # A ring has no hosts of its servers' own.
    assert {case.system.name for case in cases if not case.setting.beside} == {
        name for name in beside if DDP not in name
    }


def test_only_if_asked_for() -> None:
    for bench in ("wire", "accuracy"):
        assert bench in LONG
        assert wanted(TORCH, [bench])


def seed(losses: list[float], right: float, digest: str = "a") -> dict[str, object]:
    seconds = [10.0 * n for n in range(1, len(losses) + 1)]
    return {"losses": losses, "seconds": seconds, "right": right, "digest": digest}


def outcome(*workers: list[dict[str, object]]) -> Outcome:
    return Outcome([{"result": {"trained": trained}} for trained in workers], {})


def test_workers_must_have_the_same_weights() -> None:
    one, two = seed([2.0, 1.0], 0.5), seed([4.0, 3.0], 0.7)
    figures = accuracy._measure(outcome([one, two], [one, two]))
    assert figures["loss after 1 of 2"].value == 3.0
    assert figures["loss"].value == 2.0
    assert figures["right"].value == pytest.approx(60.0)
    with pytest.raises(JobFailed, match="weights differ"):
        accuracy._measure(outcome([one, two], [one, seed([4.0, 3.0], 0.7, "b")]))


def test_a_race_is_over_where_the_loss_is_reached() -> None:
    early, late = seed([3.5, 2.5, 2.0], 0.5), seed([4.0, 3.25, 3.0], 0.5)
    figures = accuracy._race(outcome([early, late], [early, late]))
    assert figures["time to a loss of 3"].value == pytest.approx((15.0 + 30.0) / 2)
    never = seed([4.0, 3.5, 3.2], 0.5)
    with pytest.raises(JobFailed, match=r"not reached; it came to 3\.200"):
        accuracy._race(outcome([early, never]))


def test_rivals_race_at_their_best() -> None:
    races = [c for c in accuracy.accuracy([OURS, RING], "usual") if not c.setting.loopback]
    of_ddp = [c.system for c in races if c.system.name.startswith(DDP)]
    assert {s.env["LAB_CONNECTIONS"] for s in of_ddp} == {"4"}
    assert {s.env["LAB_HOOK"] for s in of_ddp} == {"bf16", "powersgd 1", "powersgd 4"}
    for ring in of_ddp:
        # Smaller buckets would give PowerSGD wrong sums.
        assert not ring.env["LAB_HOOK"].startswith("powersgd") or (
            ring.env["LAB_BUCKET_MB"] == "1024"
        )
    by_backend = [c.system.env for c in races if c.system.name.startswith(f"{OURS.name} powersgd")]
    sooner = [ring.env for ring in of_ddp if ring.name.endswith("sooner")]
    assert {env["LAB_HOOK"] for env in by_backend} == {env["LAB_HOOK"] for env in sooner}
    assert {env["LAB_PLAIN_STEPS"] for env in by_backend + sooner} == {"2"}
    assert {env["LAB_BUCKET_MB"] for env in by_backend} == {"1024", "5"}
    assert {env["LAB_BACKEND"] for env in by_backend} == {"mercury"}


def small(case: Case) -> dict[str, float]:
    bed = LoopbackBed([*dict.fromkeys(case.setting.places().values())])
    outcome = run_job(
        bed, case.system, case.config, env={**case.system.env, **case.env}, at=case.setting.places()
    )
    return {name: figure.value for name, figure in case.measure(outcome).items()}


@pytest.mark.parametrize("word", ["bf16", "int8"])
def test_sums_are_checked_in_a_job(word: str) -> None:
    chosen = system(MERCURY, None)
    asked = Asked(nodes=[(2, 2)], models=["resnet50"], scale=0.01, rate=1e9)
    cases = wire.wire([chosen], asked, 2, "quick")
    (case,) = (c for c in cases if c.system.name == f"{MERCURY} {word}")
    setting = replace(case.setting, loopback=True)
    assert small(replace(case, setting=setting))["time"] > 0
