"""The layer tables hold the published models."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pslite_ext.forecast.model.architectures import ARCHITECTURES
from pslite_ext.forecast.model.zoo import PROFILES
from scripts.lab.workloads.workload import WorkloadError, load

TOTALS = {  # parameters that are exchanged: batch normalisation's running figures are not
    "vgg16": 138_357_544,
    "vgg16_32x32": 33_638_218,
    "vgg19": 143_667_240,
    "alexnet": 61_100_840,
    "resnet18": 11_689_512,
    "resnet50": 25_557_032,
    "resnet152": 60_192_808,
    "inception_v3": 23_834_568,
    "bert_base": 109_482_240,
    "mobilenet": 4_231_976,
    "lenet5": 431_080,
}
GIGA_MULTIPLY_ADDS = {
    "vgg16": 15.47,
    "vgg19": 19.63,
    "alexnet": 0.71,
    "resnet18": 1.82,
    "resnet50": 4.11,
    "resnet152": 11.56,
    "inception_v3": 5.73,
    "mobilenet": 0.58,  # with 569 million in convolutions and the last layer
}


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_totals_are_the_published_ones(name: str) -> None:
    workload = load(name)
    assert workload.elements == TOTALS[name]
    names = [t.name for t in workload.tensors]
    assert len(set(names)) == len(names)


def test_gradients_in_steps_appear_together_and_take_as_long() -> None:
    workload = load("resnet50").in_steps(13)
    assert len({*workload.job().bp_end}) == 13
    assert workload.compute_s == pytest.approx(load("resnet50").compute_s)
    assert [t.bytes for t in workload.tensors] == [t.bytes for t in load("resnet50").tensors]


@pytest.mark.parametrize("name", GIGA_MULTIPLY_ADDS)
def test_operations_are_the_published_ones(name: str) -> None:
    flops = sum(p.flops for p in ARCHITECTURES[name]())
    assert flops / 2e9 == pytest.approx(GIGA_MULTIPLY_ADDS[name], rel=0.01)


def test_lenet_s_eight_tensors() -> None:
    sizes = [t.bytes for t in load("lenet5").tensors]
    assert sizes == [2000, 80, 100000, 200, 1600000, 2000, 20000, 40]


def test_vgg16_s_first_dense_layer_holds_most_of_it() -> None:
    biggest = max(load("vgg16").tensors, key=lambda t: t.bytes)
    assert (biggest.name, biggest.bytes) == ("fc6_weight", 25088 * 4096 * 4)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_times_add_up_to_the_profile_s(name: str) -> None:
    assert load(name).compute_s == pytest.approx(
        json.loads((PROFILES / f"{name}.json").read_text())["iteration_s"]
    )


def test_scaling_keeps_the_ratio_of_computation_to_communication() -> None:
    whole = load("vgg16")
    part = whole.scaled(0.2)
    assert part.bytes == pytest.approx(whole.bytes * 0.2, rel=1e-4)
    assert part.compute_s == pytest.approx(whole.compute_s * 0.2)
    assert min(t.elements for t in whole.scaled(1e-9).tensors) == 1
    assert all(t.bytes % 4 == 0 for t in part.tensors)


def test_another_computation_time_keeps_sizes_and_shares() -> None:
    whole = load("resnet50")
    fast = whole.with_compute(0.01)
    assert fast.compute_s == pytest.approx(0.01)
    assert fast.bytes == whole.bytes
    assert whole.with_compute(0).compute_s == 0


def test_the_model_of_an_iteration_takes_it() -> None:
    job = load("lenet5").job()
    assert [layer.name for layer in job.layers][:2] == ["conv1_weight", "conv1_bias"]
    assert job.compute_s == pytest.approx(load("lenet5").compute_s)


def test_a_profile_of_measured_times_is_taken_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "measured.json"
    names = [t.name for t in load("lenet5").tensors]
    path.write_text(json.dumps({"tensors": {n: [0.5, 0.25] for n in names}}))
    assert load("lenet5", path).compute_s == 8 * 0.75


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"tensors": {}}', '{"iteration_s": -1, "forward_share": 0.5}']
)
def test_a_wrong_profile_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "wrong.json"
    path.write_text(text)
    with pytest.raises(WorkloadError, match="wrong.json"):
        load("lenet5", path)


def test_an_unknown_model_is_named() -> None:
    with pytest.raises(WorkloadError, match="no model 'vgg17'"):
        load("vgg17")
