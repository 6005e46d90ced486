"""The bench `device`: what is compared with a GPU and without; its models, small, on processors."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from scripts.lab.bed.bed import LoopbackBed
from scripts.lab.benches import device
from scripts.lab.benches.case import Case
from scripts.lab.benches.catalogue import LONG, wanted
from scripts.lab.benches.scaling import Asked
from scripts.lab.systems.job import JobFailed, run_job
from scripts.lab.systems.system import TORCH, System, system

OURS = System(TORCH, "python", {"DMLC_PS_VAN_TYPE": "mercury"})
DDP = System("torch-ddp", "python", servers=False)


def fake(folder: Path, text: str) -> str:
    python = folder / "python"
    python.write_text(f"#!/bin/sh\n{text}\n")
    python.chmod(0o755)
    return str(python)


@pytest.fixture
def one_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "gpus", lambda _python: ("A100",))


def test_gpus_are_those_that_torch_sees(tmp_path: Path) -> None:
    (tmp_path / "two").mkdir()
    (tmp_path / "none").mkdir()
    assert device.gpus(fake(tmp_path / "two", "echo A100; echo A100")) == ("A100", "A100")
    assert device.gpus(fake(tmp_path / "none", "exit 1")) == ()
    assert device.gpus(str(tmp_path / "nothing")) == ()


def test_without_a_gpu_there_are_copies_to_an_emulated_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "gpus", lambda _python: ())
    right, *cases = device.device([OURS, DDP], Asked(), "quick")
    assert "on the processor" in right.what
    assert all("no GPU is here" in case.what for case in cases)
    names = [case.system.name for case in cases]
    assert names == [
        "torch",
        "torch whole tensors",
        "torch-ddp",
        "torch-ddp 1 MB",
        "torch-ddp 5 MB",
    ]


@pytest.mark.usefixtures("one_gpu")
def test_ddp_is_at_its_best() -> None:
    right, *cases = device.device([OURS, DDP], Asked(), "usual")
    assert "on A100" in right.what
    places = {(c.setting.hosts, c.setting.per_host, c.setting.rate, c.what) for c in cases}
    assert len(places) == len(device.CELLS) * len(device.RATES) * len(device.MODELS)
    of_one = [
        c.system for c in cases if "gpt" in c.what and str(c.setting) == str(cases[0].setting)
    ]
    told = {
        tuple(s.env.get(f"LAB_{n}") for n in ("CONNECTIONS", "BUCKET_MB", "HOOK")) for s in of_one
    }
    assert {("4", None, None), (None, "1", None), ("4", "5", "bf16"), ("4", None, "fp16")} <= told
    assert not any("nccl" in s.name for s in of_one)  # two workers, one GPU
    assert {s.name for s in of_one if s.ours} == {*("torch", "torch 4 lanes", "torch 4 lanes bf16")}


@pytest.mark.usefixtures("one_gpu")
def test_a_quick_look_is_quick() -> None:
    cases = device.device([OURS, DDP], Asked(), "quick")
    assert sum(case.estimate_s for case in cases) < 10 * 60
    assert {case.setting.workers for case in cases} == {2}


def test_it_runs_only_when_asked_for() -> None:
    assert "device" in LONG
    assert wanted(TORCH, ["device"])
    assert not wanted(TORCH, ["scaling"])


def test_the_first_and_the_last_tensor_are_a_quarter_each() -> None:
    sizes = [layer["bytes"] for layer in json.loads(device.QUARTERS.read_text())["layers"]]
    assert 4 * sizes[0] == 4 * sizes[-1] == sum(sizes)


def small(name: str, ways: list[str], model: str) -> Case:
    """What a GPU would train, small and on the processor."""
    try:
        python = system(name, None).python
    except ValueError as missing:
        pytest.skip(str(missing))
    made = [replace(s, python=python) for s in (OURS, DDP) if s.name == name]
    cases = device.device(made, Asked(nodes=[(2, 1)]), "usual")
    (chosen,) = [
        case
        for case in cases
        if model in case.what and case.system.name == " ".join(ways) and case.setting.rate == 1e10
    ]
    return replace(
        chosen,
        env={**chosen.env, "LAB_SMALL": "1"},
        config=replace(chosen.config, rounds=3, warmup=1),
    )


@pytest.mark.drawn(1)
@pytest.mark.usefixtures("one_gpu")
@pytest.mark.parametrize(
    ("name", "ways", "model"),
    [
        (TORCH, ["torch"], "gpt"),
        ("torch-ddp", ["torch-ddp", "4", "connections", "5", "MB", "bf16"], "resnet50"),
        ("torch-ddp", ["torch-ddp", "alone"], "gpt"),
    ],
)
def test_models_are_trained(name: str, ways: list[str], model: str) -> None:
    case = small(name, ways, model)
    hosts = [*dict.fromkeys(case.setting.places().values())]
    with LoopbackBed(hosts) as bed:
        outcome = run_job(
            bed, case.system, case.config, env=case.env, at=case.setting.places(), timeout_s=120
        )
    assert case.measure(outcome)["time"].value > 0
    if "alone" in ways:
        return
    outcome.results[0]["digest"] = "another"
    with pytest.raises(JobFailed, match="weights differ"):
        case.measure(outcome)
