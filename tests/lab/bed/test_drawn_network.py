"""Rates drawn at random are those of the network that was named, and the same for everybody."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from scripts.lab.bed.bed import LoopbackBed, Rate
from scripts.lab.bed.disturbance import Milestones
from scripts.lab.bed.drawn_network import NETWORKS, RATES, DrawnNetwork, Ways, drawn


@pytest.mark.parametrize("network", NETWORKS)
def test_rates_come_as_often_as_they_should(network: str) -> None:
    draws = [drawn(network, 16, number, seed=3) for number in range(200)]
    for way in range(2):
        seen = Counter(ways[way] for draw in draws for ways in draw)
        for rate, share in zip(RATES, NETWORKS[network]):
            assert seen[rate] / (16 * 200) == pytest.approx(share, abs=0.04)
            assert (seen[rate] > 0) == (share > 0)


def test_a_draw_is_the_same_for_all_and_each_is_its_own() -> None:
    assert drawn("N3", 16, 5, seed=1) == drawn("N3", 16, 5, seed=1)
    assert drawn("N3", 4, 5, seed=1) == drawn("N3", 16, 5, seed=1)[:4]
    assert drawn("N3", 16, 5, seed=1) != drawn("N3", 16, 6, seed=1)
    assert drawn("N3", 16, 5, seed=1) != drawn("N3", 16, 5, seed=2)
    ways = [way for number in range(50) for way in drawn("N3", 16, number, seed=1)]
    # Out and in are drawn on their own.
    assert sum(way.out == way.into for way in ways) / len(ways) == pytest.approx(0.5, abs=0.1)


class Seen(LoopbackBed):
    def __init__(self) -> None:
        super().__init__(["a", "b", "c"])
        self.rates: dict[str, Ways] = {}

    def set_rate(self, host: str, up: Rate, down: Rate) -> None:
        assert up is not None
        assert down is not None
        self.rates[host] = Ways(up, down)


def test_a_bed_gets_the_first_draw_and_a_scheduler_hears_of_it(tmp_path: Path) -> None:
    feed = tmp_path / "feed"
    network = DrawnNetwork("N2", 0.01, seed=4, feed=feed, share=0.5)
    bed, milestones = Seen(), Milestones()
    thread = threading.Thread(target=network, args=(bed, milestones))
    thread.start()
    assert milestones.ready.wait(10)
    wanted = drawn("N2", 3, 0, seed=4)
    assert [*bed.rates.values()] == [Ways(w.out / 100, w.into / 100) for w in wanted]
    heard = [json.loads(line) for line in feed.read_text().splitlines()]
    assert [line["host"] for line in heard] == [bed.address(host) for host in bed.hosts]
    assert [Ways(line["out"], line["in"]) for line in heard] == [
        Ways(w.out / 200, w.into / 200) for w in wanted
    ]
    milestones.end()
    thread.join()
    assert network.at(time.monotonic()) == wanted


def test_what_held_at_a_moment() -> None:
    network = DrawnNetwork("N1", 1.0)
    first, second = [Ways(1, 1)], [Ways(2, 2)]
    network.changes = [(10.0, first), (15.0, second)]
    assert [network.at(t) for t in (9.0, 14.9, 15.0, 99.0)] == [first, first, second, second]
