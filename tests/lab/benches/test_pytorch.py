"""PyTorch's bench: who is measured where, and in its bench alone."""

from __future__ import annotations

from scripts.lab.benches.case import Setting
from scripts.lab.benches.catalogue import BENCHES, LONG, cases_of, wanted
from scripts.lab.benches.pytorch import computations, with_buckets
from scripts.lab.benches.scaling import Asked
from scripts.lab.benches.turns import MODELS
from scripts.lab.systems.peers import ROOT
from scripts.lab.systems.system import TORCH, System, system

OURS = System(TORCH, "python", {"DMLC_PS_VAN_TYPE": "mercury"})
DDP = System("torch-ddp", "python", servers=False)
SYSTEMS = [OURS, DDP, system("zmq", None)]
WAYS = {"torch", "torch-ddp", "torch-ddp 1 MB", "torch-ddp 5 MB"}


def test_ddp_has_buckets_of_several_sizes() -> None:
    made = with_buckets(SYSTEMS)
    assert [s.name for s in made if s.name in WAYS] == [s.name for s in made[:4]]
    assert [s.env.get("LAB_BUCKET_MB") for s in made[:4]] == [None, None, "1", "5"]


def test_each_way_is_measured_on_the_ring_s_bed() -> None:
    cases = [c for c in cases_of(["torch"], SYSTEMS, "usual") if not c.setting.loopback]
    real = [c for c in cases if "computed by the processor" in c.what]
    assert {c.system.name for c in real} == WAYS
    cases = [c for c in cases if c not in real]
    beside = [c for c in cases if c.setting.beside]
    assert {c.system.name for c in beside} == WAYS
    assert {c.setting.workers for c in beside} == {2, 4, 8}
    assert len(beside) == len(WAYS) * 3 * 3 * 2  # amounts of computation
    assert {c.system.name for c in cases if not c.setting.beside} == {TORCH}
    assert {c.bench for c in cases} == {"torch"}


def test_one_amount_of_computation_is_by_a_link_and_one_by_the_ring() -> None:
    assert computations(Setting(2, 2, beside=True)) == [0.6, 0.9]
    assert computations(Setting(8, 8, beside=True)) == [0.6, 0.9 * 1.75]


def test_what_is_asked_for_counts() -> None:
    asked = Asked(nodes=[(2, 2)], models=["resnet50"], colocate=True)
    cases = cases_of(["torch"], SYSTEMS, "usual", asked)
    alone = [c for c in cases if c.setting.workers == 1]
    assert {c.system.name for c in alone} == {TORCH}
    assert len(cases) - len(alone) == 4 * len(WAYS)
    assert sum(c.setting.loopback for c in cases) - len(alone) == len(WAYS)


def test_it_runs_only_when_asked_for() -> None:
    assert "torch" in BENCHES
    assert "torch" in LONG
    for bench in ("peers", "scaling", "iteration"):
        assert TORCH not in {c.system.name for c in cases_of([bench], SYSTEMS, "usual")}
        assert not wanted(TORCH, [bench])
    assert wanted(TORCH, ["torch"])
    assert wanted("torch-ddp", ["torch"])
    assert not wanted("torch-ddp", ["iteration"])


def test_by_turns_in_one_job() -> None:
    """DDP's steps are in the same processes, so ours is the only system."""
    cases = cases_of(["turns"], SYSTEMS, "usual")
    assert {c.system.name for c in cases} == {TORCH}
    assert {c.bench for c in cases} == {"turns"}
    assert wanted(TORCH, ["turns"])
    assert not wanted("torch-ddp", ["turns"])
    source = (ROOT / "scripts/lab/systems/torch_by_turns.py").read_text()
    assert all(f'    "{model}": (' in source for model in MODELS)
