"""What is foretold of a race, where it can be worked out by hand."""

from __future__ import annotations

import math

import pytest

from scripts.lab.bed.drawn_network import NETWORKS
from scripts.lab.benches import fabric_prediction
from scripts.lab.benches.case import TCP_SHARE
from scripts.lab.benches.fabric_prediction import Fabric, FabricByPackets, rival
from scripts.lab.benches.race_prediction import Conditions
from scripts.lab.workloads.race import BYTES

ALL = ("ring gloo", "tree", "async", "fabric A-30", "fabric S", "fabric S, whole")
STEP_S = BYTES * 8 / (10e9 * 0.01 * TCP_SHARE)  # an update over a link


@pytest.fixture(autouse=True)
def steady(monkeypatch: pytest.MonkeyPatch) -> None:
    """All links always have 100 Mbit/s, without bursts; all begin at once; letters take no time."""
    monkeypatch.setitem(NETWORKS, "steady", (0, 0, 0, 0, 1))
    monkeypatch.setattr(fabric_prediction, "LETTER_S", 0.0)


def conditions(workers: int, compute_s: float = 0.1) -> Conditions:
    return Conditions("C0", "steady", 0.01, workers, compute_s, begun_within_s=0.0, burst=0)


@pytest.mark.parametrize("name", [name for name in ALL if name != "async"])
def test_a_race_begins_when_the_last_one_does(name: str) -> None:
    def over_s(begun_within_s: float) -> float:
        made = rival(
            name, Conditions("C0", "steady", 0.01, 8, begun_within_s=begun_within_s, burst=0)
        )
        assert made is not None
        return made.begun_at(80)

    assert over_s(0.1) == pytest.approx(over_s(0.0) + 0.1)


@pytest.mark.parametrize("workers", [4, 30])
def test_a_ring_takes_its_steps_and_everybody_computes(workers: int) -> None:
    round_s = 0.1 + 2 * (workers - 1) / workers * STEP_S
    made = rival("ring gloo", conditions(workers))
    assert made is not None
    # The ones that compute count when they have.
    assert made.gradients(10 * round_s + 0.1 + 1e-6) == 11 * workers


@pytest.mark.parametrize("workers", [4, 8])
def test_in_a_ring_nothing_is_sent_to_one_that_still_computes(workers: int) -> None:
    """When the last one is ready, all steps are still to do."""

    class Uneven(Conditions):
        def computes_s(self, worker: int, iteration: int) -> float:
            return 5.0 if worker == 0 else 0.1

    made = rival("ring gloo", Uneven("C0", "steady", 0.01, workers, begun_within_s=0.0, burst=0))
    assert made is not None
    steps = 2 * (workers - 1)
    assert made.begun_at(workers + 1) == pytest.approx(5.0 + steps * STEP_S / workers)


@pytest.mark.parametrize("name", ["ring gloo", "tree", "async"])
def test_a_race_is_over_when_somebody_begins_with_a_good_model(name: str) -> None:
    """One worker: its tenth gradient is begun with the model that nine have made."""
    made = rival(name, conditions(1))
    assert made is not None
    first_s = STEP_S if name == "async" else 0.0  # until it has the model
    assert made.begun_at(10) == pytest.approx(first_s + 9 * (0.1 + 2 * first_s))


def test_in_step_one_stands_for_all_and_else_each_for_itself() -> None:
    for name, in_step in (("ring gloo", True), ("fabric S", True), ("async", False)):
        times = []
        for gradients in (41, 44):
            made = rival(name, conditions(4))
            assert made is not None
            times.append(made.begun_at(gradients))
        assert (times[0] == times[1]) == in_step, name


def test_two_workers_of_one_host_sum_in_a_tree_without_a_link() -> None:
    made = rival("tree", conditions(2))
    assert made is not None
    assert made.gradients(1.05) == 2 * 10


def test_a_tree_of_two_hosts_sends_each_way_once() -> None:
    made = rival("tree", conditions(4))
    assert made is not None
    piece_s = STEP_S * 65536 / BYTES
    round_s = 0.1 + STEP_S + piece_s  # the last piece goes up, and down again
    assert made.gradients(10 * round_s + 0.1 + 0.01) == 11 * 4


def test_a_worker_alone_gets_computes_and_pushes() -> None:
    for name in ("async", "fabric A-30", "fabric S"):
        made = rival(name, conditions(1))
        assert made is not None
        assert made.gradients(10 * (0.1 + 2 * STEP_S) - 1e-3) == 10, name


def test_in_mlfabric_updates_share_a_link_as_sums() -> None:
    """With much to compute, each round is computed once all have the model."""
    workers, seconds = 30, 60.0
    summed = Fabric(conditions(workers), None).gradients(seconds)
    alone_s = 0.1 + 2 * workers * STEP_S  # the server's link, if each goes over it
    assert summed > 2 * workers * seconds / alone_s


def test_a_chain_takes_little_more_than_one_update_each_way() -> None:
    workers, seconds = 30, 60.0
    chained = FabricByPackets(conditions(workers), None).gradients(seconds)
    round_s = 0.1 + 2 * STEP_S
    assert 0.6 * workers * seconds / round_s < chained < workers * seconds / round_s
    assert chained > 2 * Fabric(conditions(workers), None).gradients(seconds)


@pytest.mark.parametrize("name", ALL)
def test_gradients_are_bounded_by_computation_and_never_fewer_later(name: str) -> None:
    counts = []
    for seconds in (1, 5, 20):
        made = rival(name, Conditions("C1", "N2", 0.01, 10))
        assert made is not None
        counts.append(made.gradients(seconds))
        assert counts[-1] <= 10 * math.ceil(seconds / 0.1)
    assert counts == sorted(counts)
    assert counts[-1] > counts[0]


def test_who_is_not_simulated() -> None:
    assert rival("fabric A-30, no order", conditions(4)) is None
