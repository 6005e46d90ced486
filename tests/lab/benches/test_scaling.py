"""The scaling bench: what links carry in each placement, and which cases there are."""

from __future__ import annotations

import pytest

from scripts.lab.benches.case import Setting
from scripts.lab.benches.catalogue import cases_of
from scripts.lab.benches.peers import peers_floor_s
from scripts.lab.benches.prediction import simulated_s
from scripts.lab.benches.scaling import (
    TOGETHER,
    Asked,
    link_figures,
    scaling,
    settings,
    slow_hosts,
)
from scripts.lab.benches.slow_host import SlowHost
from scripts.lab.systems.system import MERCURY, System, system
from scripts.lab.systems.watch import Links, Tally
from scripts.lab.workloads.job_config import Config, workload_of

RING = System("ring", "python", servers=False)


@pytest.mark.parametrize("servers", range(1, 12))
@pytest.mark.parametrize("workers", range(2, 9))
def test_the_load_is_that_of_the_busiest_host(workers: int, servers: int) -> None:
    """Counted flow by flow: each worker to each server an equal part, and back to each worker."""
    for beside in (False, True):
        sent: dict[str, float] = {}
        received: dict[str, float] = {}
        for w in range(workers):
            for s in range(servers):
                here = f"worker{w}"
                there = f"worker{s % workers}" if beside else f"server{s}"
                for a, b in ((here, there), (there, here)):
                    if a != b:
                        sent[a] = sent.get(a, 0) + 1 / servers
                        received[b] = received.get(b, 0) + 1 / servers
        load = Setting(workers, servers, 1e9, beside=beside).load()
        assert load == pytest.approx(max(*sent.values(), *received.values()))


def test_beside_them_servers_cost_what_a_ring_does() -> None:
    for n in (2, 3, 8, 64):
        setting = Setting(n, n, 1e9, beside=True)
        assert setting.load() == pytest.approx(setting.load(servers=False))
        assert setting.load() == pytest.approx(2 * (n - 1) / n)


def test_the_floor_grows_with_the_load() -> None:
    config = Config("train", {"model": "vgg16", "scale": 0.05, "compute_s": 0.01})
    own, beside = (Setting(8, 8, 1e8, beside=b) for b in (False, True))
    ratio = peers_floor_s(config, beside, 1, True) / peers_floor_s(config, own, 1, True)
    assert 1.7 < ratio <= 1.75
    assert peers_floor_s(config, own, 1, False) == peers_floor_s(config, beside, 1, True)


def test_all_links_together_have_one_rate_unless_one_is_asked_for() -> None:
    usual = settings([(2, 2), (8, 8)], None, (1.0, 0.5), False)
    assert [s.rate for s in usual] == [TOGETHER / of for of in (2, 4, 8, 16)]
    assert [s.rate for s in settings([(8, 8)], 1e8, (1.0, 0.5), True)] == [1e8]


def test_systems_without_servers_are_measured_once() -> None:
    mercury = system(MERCURY, None)
    cases = scaling([mercury, RING], Asked(nodes=[(4, 4)], models=["vgg16"]), 3)
    placed = [
        (case.system.name, case.setting.beside)
        for case in cases
        if case.setting.rate == TOGETHER / 4
    ]
    assert placed == [(MERCURY, False), (MERCURY, True), ("ring", True)]
    assert all(case.watched for case in cases)


def test_short_iterations_are_measured_more_often() -> None:
    def rounds(scale: float | None) -> set[int]:
        asked = Asked(nodes=[(4, 4)], rate=1e8, scale=scale, models=["vgg16"])
        return {case.config.rounds for case in scaling([system(MERCURY, None), RING], asked, 3)}

    assert rounds(None) == {3}
    assert min(rounds(0.01)) > 8


def test_the_quick_ones_are_vgg16_at_four_and_eight_in_both_placements() -> None:
    cases = cases_of(["scaling"], [system(MERCURY, None)], "quick")
    assert [(c.setting.workers, c.setting.beside) for c in cases] == [
        *((4, False), (8, False)),
        *((4, True), (8, True)),
    ]
    # Of eight, 1.2 MB a flow and iteration: more takes more than five minutes with all rivals.
    assert all("vgg16 x 0.018" in case.what for case in cases)
    assert {case.config.rounds for case in cases} == {2}
    only = cases_of(["scaling"], [system(MERCURY, None)], "usual", Asked([(3, 2)], 1e8))
    assert {(c.setting.workers, c.setting.servers, c.setting.rate) for c in only} == {(3, 2, 1e8)}


def test_a_slow_host_s_server_sums_less() -> None:
    mercury = system(MERCURY, None)
    cases = slow_hosts([mercury, RING, System("stock", "python")], 5)
    told = [(c.system.name, c.setting.beside, c.what.split(", ")[-1], c.env) for c in cases]
    worker, server = (f"{role}0's link at 0.5 of the rate" for role in ("worker", "server"))
    assert told == [
        (MERCURY, False, worker, {}),
        (MERCURY, False, server, {"MERCURY_SERVER_SHARES": "1,2,2,2"}),
        (MERCURY, True, worker, {"MERCURY_SERVER_SHARES": "0,1,1,1"}),
        ("ring", True, worker, {}),
    ]
    assert all(case.disturbance is not None and case.watched for case in cases)


def test_the_floor_of_a_slow_host_is_that_of_the_busiest_link() -> None:
    own, beside = (Setting(4, 4, 1e9, beside=b) for b in (False, True))
    for setting, host, servers, load in (
        (own, "worker0", True, 2.0),  # its own gradients
        (own, "server0", True, 8 / 7),  # servers' links are equally long busy
        (beside, "worker0", True, 2.0),
        (beside, "worker0", False, 3.0),  # a ring's 2 (n - 1) / n at half the rate
    ):
        slow = SlowHost(host, 0.5)
        assert slow.bandwidth(setting, servers) == pytest.approx(setting.bandwidth / load)
        even = SlowHost(host, 1.0)
        assert even.bandwidth(setting, servers) == pytest.approx(
            setting.bandwidth / setting.load(servers)
        )


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("nodes", [2, 4, 8])
def test_the_simulator_is_told_of_the_bench_s_jobs(nodes: int, beside: bool) -> None:
    """No schedule beats the floor, and ours come near it."""
    setting = Setting(nodes, nodes, 1e9 / nodes, beside=beside)
    tensors = {"model": "vgg16", "scale": 0.01, "compute_s": 0.1}
    floor = peers_floor_s(Config("train", tensors), setting, 1.0, True)
    assert floor < simulated_s(workload_of(tensors).job(), setting) < 1.5 * floor


def test_links_figures_are_of_the_worst_host() -> None:
    tallies = {"a": Tally(1000, 0, 100, 1, 0), "b": Tally(2000, 3000, 100, 0, 7)}
    figures = link_figures(Links(1.0, tallies), 32e3)
    found = {name: figure.value for name, figure in figures.items()}
    assert found["sent again, worst host"] == 1.0
    assert found["dropped, worst host"] == 7
    assert (found["link used, least"], found["link used, most"]) == (0.25, 0.75)
