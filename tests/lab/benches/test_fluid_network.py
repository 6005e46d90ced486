"""Transfers in virtual time: who shares which link, and when they end."""

from __future__ import annotations

import math
import random

import pytest

from scripts.lab.benches.fluid_network import FluidNetwork

A, B, C = range(3)


def network(*rates: tuple[float, float], every_s: float = 1e9) -> FluidNetwork:
    return FluidNetwork(lambda _time: rates, every_s)


def test_a_transfer_alone_takes_its_slower_way_and_none_within_a_host() -> None:
    over: list[tuple[str, float]] = []
    net = network((10, 10), (10, 4), (10, 10))
    net.send(A, B, 8, lambda: over.append(("slow", net.now)))
    net.send(C, C, 1e9, lambda: over.append(("none", net.now)))
    net.run(100)
    assert over == [("none", 0), ("slow", pytest.approx(2))]


def test_what_is_passed_on_as_it_comes_flows_at_one_rate() -> None:
    over: list[float] = []
    net = network((10, 10), (4, 10), (10, 8))
    net.along([A, B, C], 8, lambda: over.append(net.now))
    net.run(100)
    assert over == [pytest.approx(2)]


def test_ways_that_have_been_idle_let_a_burst_through_at_once() -> None:
    over: list[float] = []
    net = FluidNetwork(lambda _time: [(10, 10), (10, 10)], 1e9, burst=4)

    def send() -> None:
        net.send(A, B, 14, lambda: over.append(net.now))

    send()  # has all of a burst
    net.at(1.2, send)  # has saved up for 0.2 s
    net.at(2.0, send)  # shares the ways
    net.run(100)
    # From 2 s on, the second one has 4 left and the third 14.
    assert over[0] == pytest.approx(1)
    assert over[2] == pytest.approx(3.8)


def test_a_rate_holds_until_it_changes() -> None:
    over: list[float] = []
    net = FluidNetwork(lambda time: [(10, 10), (10, 10 if time < 5 else 1)], every_s=5)
    net.send(A, B, 53, lambda: over.append(net.now))
    net.run(7)
    assert over == []
    net.run(100)
    assert over == [pytest.approx(8)]


def test_once_stopped_nothing_more_happens() -> None:
    over: list[float] = []
    net = network((10, 10), (10, 10))
    net.after(2, net.stop)
    net.after(2, lambda: over.append(net.now))
    net.send(A, B, 100, lambda: over.append(net.now))
    net.run()
    assert (net.now, over) == (2, [])


def test_a_limit_leaves_room_for_others_until_it_is_lifted() -> None:
    over: list[tuple[str, float]] = []
    net = network((10, 10), (10, 10), (10, 10))
    slow = net.send(A, B, 12, lambda: over.append(("limited", net.now)), limit=1)
    net.send(A, C, 18, lambda: over.append(("other", net.now)))
    net.after(2, lambda: net.lift_limit(slow))
    net.run(100)
    assert [who for who, _ in over] == ["other", "limited"]
    assert [when for _, when in over] == pytest.approx([2, 3])


def test_no_way_carries_more_than_it_can_and_none_is_idle_for_nothing() -> None:
    chance = random.Random(5)
    for _ in range(200):
        rates = [(chance.uniform(1, 9), chance.uniform(1, 9)) for _ in range(5)]
        net = network(*rates)
        limits = [chance.choice([math.inf, chance.uniform(0.1, 3)]) for _ in range(12)]
        sent = []
        for limit in limits:
            hosts = chance.sample(range(5), chance.choice([2, 2, 3, 5]))
            sent.append(net.along(hosts, 1e6, lambda: None, limit))
        net.run(1e-3)
        used: dict[tuple[int, int], float] = {}
        for transfer in sent:
            assert 0 < transfer.rate <= transfer.limit * (1 + 1e-6)
            for way in transfer.ways:
                used[way] = used.get(way, 0.0) + transfer.rate
        full = {way for way, rate in used.items() if rate > rates[way[0]][way[1]] * (1 - 1e-6)}
        assert all(rate <= rates[way[0]][way[1]] * (1 + 1e-6) for way, rate in used.items())
        for transfer in sent:
            limited = transfer.rate >= transfer.limit * (1 - 1e-6)
            assert limited or full & set(transfer.ways)
